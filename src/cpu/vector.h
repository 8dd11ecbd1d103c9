// SPDX-License-Identifier: Apache-2.0
// Vectors of this build's instructions: what a loop over channels reads, computes with and writes.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>
#endif

#include "crossover/float16.h"

namespace crossover::cpu {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif
inline constexpr int lanes = vector_bytes / static_cast<int>(sizeof(float));

using Floats [[gnu::vector_size(vector_bytes)]] = float;
using Words [[gnu::vector_size(vector_bytes)]] = std::uint32_t;
using HalfWords [[gnu::vector_size(vector_bytes / 2)]] = std::uint16_t;
using Bytes [[gnu::vector_size(vector_bytes / 4)]] = std::uint8_t;

inline Floats all(float x) { return Floats{} + x; }

/// Where a condition holds, which compares vectors as GCC does: a lane of ones or zeros.
template <class Condition>
inline Floats where(Condition condition, Floats then, Floats otherwise) {
  return condition ? then : otherwise;
}

/// As many channels as a vector has lanes.
struct WholeVector {
  [[nodiscard]] static constexpr std::size_t size() { return lanes; }

  template <class Result, class T>
  static Result copied(const T* from) {
    Result result;
    std::memcpy(&result, from, sizeof result);
    return result;
  }
  template <class Value, class T>
  static void copy(const Value& value, T* to) {
    std::memcpy(static_cast<void*>(to), &value, sizeof value);
  }
};

/// Fewer: the last channels of a pixel. The other lanes are zero.
struct PartOfVector {
  std::size_t count;

  [[nodiscard]] std::size_t size() const { return count; }

#if defined(__AVX512BW__) && defined(__AVX512VL__)
  // A memcpy() of so many bytes is a call, and what it wrote can't be forwarded to a vector's load.
  template <class Result, class T>
  Result copied(const T* from) const {
    if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
      return std::bit_cast<Result>(_mm512_maskz_loadu_epi32(mask(), from));
    } else if constexpr (sizeof(T) == sizeof(std::uint16_t)) {
      return std::bit_cast<Result>(_mm256_maskz_loadu_epi16(mask(), from));
    } else {
      return std::bit_cast<Result>(_mm_maskz_loadu_epi8(mask(), from));
    }
  }
  template <class Value, class T>
  void copy(const Value& value, T* to) const {
    if constexpr (sizeof(T) == sizeof(std::uint32_t)) {
      _mm512_mask_storeu_epi32(to, mask(), std::bit_cast<__m512i>(value));
    } else if constexpr (sizeof(T) == sizeof(std::uint16_t)) {
      _mm256_mask_storeu_epi16(to, mask(), std::bit_cast<__m256i>(value));
    } else {
      _mm_mask_storeu_epi8(to, mask(), std::bit_cast<__m128i>(value));
    }
  }

 private:
  [[nodiscard]] __mmask16 mask() const { return static_cast<__mmask16>((1U << count) - 1U); }
#else
  template <class Result, class T>
  Result copied(const T* from) const {
    Result result{};
    std::memcpy(&result, from, count * sizeof(T));
    return result;
  }
  template <class Value, class T>
  void copy(const Value& value, T* to) const {
    std::memcpy(static_cast<void*>(to), &value, count * sizeof(T));
  }
#endif
};

/// In the lanes that are not the part's what `otherwise` has.
inline Floats only(WholeVector /*part*/, Floats x, Floats /*otherwise*/ = Floats{}) { return x; }
inline Floats only(PartOfVector part, Floats x, Floats otherwise = Floats{}) {
  Words lane{};
  for (std::uint32_t i = 0; i < lanes; ++i) {
    lane[i] = i;
  }
  return lane < static_cast<std::uint32_t>(part.size()) ? x : otherwise;
}

/// As float32, as widened() gives it.
template <class Part, class T>
inline Floats load(Part part, const T* from) {
  if constexpr (std::is_same_v<T, float>) {
    return part.template copied<Floats>(from);
  } else if constexpr (std::is_same_v<T, Bf16>) {
    const auto bits = part.template copied<HalfWords>(from);
    return std::bit_cast<Floats>(__builtin_convertvector(bits, Words) << 16U);
  } else {
    const auto bits = part.template copied<HalfWords>(from);
    Floats result{};
    for (int i = 0; i < lanes; ++i) {
      result[i] = widened(T{bits[i]});
    }
    return result;
  }
}

/// As narrowed() gives it.
template <class Part, class T>
inline void store(Part part, Floats x, T* to) {
  if constexpr (std::is_same_v<T, float>) {
    part.copy(x, to);
  } else if constexpr (std::is_same_v<T, Bf16>) {
    const auto bits = std::bit_cast<Words>(x);
    const Words nearest = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
    const Words quiet = (bits >> 16U) | 0x40U;
    const Words result = (bits & 0x7fffffffU) > 0x7f800000U ? quiet : nearest;
    part.copy(__builtin_convertvector(result, HalfWords), to);
  } else {
    HalfWords bits{};
    for (int i = 0; i < lanes; ++i) {
      bits[i] = narrowed<T>(x[i]).bits;
    }
    part.copy(bits, to);
  }
}

/// Adds up vectors of some rows in several chains, since an addition takes longer than a load.
template <std::size_t sums, class Terms>
inline std::array<Floats, sums> sum_of_rows(std::int64_t rows, const Terms& terms) {
  constexpr std::int64_t chains = 4;
  std::array<std::array<Floats, sums>, chains> partial{};
  std::int64_t r = 0;
  for (; r + chains <= rows; r += chains) {
    for (std::int64_t chain = 0; chain < chains; ++chain) {
      const std::array<Floats, sums> term = terms(r + chain);
      for (std::size_t i = 0; i < sums; ++i) {
        partial[static_cast<std::size_t>(chain)][i] += term[i];
      }
    }
  }
  for (; r < rows; ++r) {
    const std::array<Floats, sums> term = terms(r);
    for (std::size_t i = 0; i < sums; ++i) {
      partial[0][i] += term[i];
    }
  }
  std::array<Floats, sums> all{};
  for (std::size_t i = 0; i < sums; ++i) {
    all[i] = (partial[0][i] + partial[1][i]) + (partial[2][i] + partial[3][i]);
  }
  return all;
}

/// Unsigned bytes. In two steps, because GCC 12 takes lane by lane what it converts by four at
/// once.
template <class Part>
inline Words load(Part part, const std::uint8_t* from) {
  const auto half = __builtin_convertvector(part.template copied<Bytes>(from), HalfWords);
  return __builtin_convertvector(half, Words);
}
template <class Part>
inline void store(Part part, Words x, std::uint8_t* to) {
  part.copy(__builtin_convertvector(__builtin_convertvector(x, HalfWords), Bytes), to);
}

/// work(part, first) for each vector of `count` contiguous elements.
template <class Work>
inline void for_each_vector(std::int64_t count, const Work& work) {
  std::int64_t first = 0;
  for (; first + lanes <= count; first += lanes) {
    work(WholeVector{}, first);
  }
  if (first < count) {
    work(PartOfVector{static_cast<std::size_t>(count - first)}, first);
  }
}

}  // namespace crossover::cpu
