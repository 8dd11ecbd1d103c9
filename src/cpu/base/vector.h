// SPDX-License-Identifier: Apache-2.0
// Vectors of this build's instructions: what a loop over channels reads, computes with and writes,
// and functions of them.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "crossover/activation.h"
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

#if defined(__AVX512F__)
/// For intrinsics that GCC 12 warns of without a mask: their header reads what nothing has set.
inline constexpr __mmask16 every_lane = 0xffff;
#endif

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

inline Words lane_numbers() {
  Words lane{};
  for (std::uint32_t i = 0; i < lanes; ++i) {
    lane[i] = i;
  }
  return lane;
}

/// In the lanes that are not the part's what `otherwise` has.
inline Floats only(WholeVector /*part*/, Floats x, Floats /*otherwise*/ = Floats{}) { return x; }
inline Floats only(PartOfVector part, Floats x, Floats otherwise = Floats{}) {
  return lane_numbers() < static_cast<std::uint32_t>(part.size()) ? x : otherwise;
}

/// float16 in the lower halves of words as float32, and back: widened() and narrowed() of each
/// lane, whose three cases are all computed.
inline Words widened_f16(Words f16) {
  constexpr std::uint32_t exponent_bits = 0x7c00U << 13U;
  const Words bits = (f16 & 0x7fffU) << 13U;
  const Words exponent = bits & exponent_bits;
  const Words normal = bits + ((127U - 15U) << 23U);
  const Words infinite = normal + ((128U - 16U) << 23U);  // or NaN
  const auto denormal =
      std::bit_cast<Words>(std::bit_cast<Floats>(normal + (1U << 23U)) - all(0x1p-14F));
  const Words finite = exponent == 0U ? denormal : normal;
  return ((f16 & 0x8000U) << 16U) | (exponent == exponent_bits ? infinite : finite);
}
inline Words narrowed_f16(Words f32) {
  const Words sign = f32 & 0x80000000U;
  const Words bits = f32 ^ sign;
  const Words infinite = bits > 0x7f800000U ? Words{} + 0x7e00U : Words{} + 0x7c00U;  // or NaN
  const auto denormal = std::bit_cast<Words>(std::bit_cast<Floats>(bits) + all(0.5F)) - 0x3f000000U;
  const Words normal = (bits - ((127U - 15U) << 23U) + 0xfffU + ((bits >> 13U) & 1U)) >> 13U;
  const Words finite = bits < 0x38800000U ? denormal : normal;
  return (sign >> 16U) | (bits >= 0x47800000U ? infinite : finite);
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
    return std::bit_cast<Floats>(widened_f16(__builtin_convertvector(bits, Words)));
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
    const Words result = narrowed_f16(std::bit_cast<Words>(x));
    part.copy(__builtin_convertvector(result, HalfWords), to);
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

#include "approximations-inl.h"

// ---- Exponentials of vectors, accurate to about two units in the last place, and what is made of
// them. The compiler's own ask for -ffast-math, which would lose NaN.

using Ints [[gnu::vector_size(vector_bytes)]] = std::int32_t;

/// exp(x): 2^n times a polynomial on half a logarithm of 2 around zero (Cephes' expf). 0 below the
/// least normal number, infinity above the largest, NaN of NaN.
inline Floats exponential(Floats x) {
  constexpr float least = -87.33654F;
  constexpr float most = 88.72283F;
#if defined(__AVX512F__)  // of NaN and a number it takes the second
  const Floats inside = _mm512_maskz_min_ps(every_lane, all(most + 1),
                                            _mm512_maskz_max_ps(every_lane, all(least), x));
#else
  const Floats inside = where(x < all(least), all(least), where(x > all(most), all(most), x));
#endif
  constexpr float shifter = 0x1.8p23F;  // added, it leaves no place for digits behind the point
  const Floats shifted = inside * 1.44269504F + shifter;
  const Floats n = shifted - shifter;
  const Floats r = (inside - n * 0.693359375F) + n * 2.12194440e-4F;
  Floats p = all(1.9875691500e-4F);
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
#if defined(__AVX512F__)
  const auto is_normal = _mm512_cmp_ps_mask(x, all(least), _CMP_NLT_UQ);  // or NaN
  return _mm512_maskz_scalef_ps(is_normal, p, n);
#else
  // 2^n in two factors, since n may be 128.
  const Ints whole = std::bit_cast<Ints>(shifted) - std::bit_cast<std::int32_t>(shifter);
  const Ints half = whole >> 1;
  const auto power = [](Ints e) { return std::bit_cast<Floats>((e + 127) << 23); };
  const Floats result = p * power(half) * power(whole - half);
  return where(x < all(least), all(0), where(x > all(most), all(__builtin_inff()), result));
#endif
}

/// log(1 + e) for e from 0 to 1: twice the artanh of e / (2 + e), which is a third at most.
inline Floats logarithm_of_1_plus(Floats e) {
  const Floats s = e / (2.0F + e);
  const Floats q = s * s;
  Floats p = all(1.0F / 17);
  for (const float term :
       {1.0F / 15, 1.0F / 13, 1.0F / 11, 1.0F / 9, 1.0F / 7, 1.0F / 5, 1.0F / 3}) {
    p = p * q + term;
  }
  return 2.0F * s * (1.0F + q * p);
}

/// log(x) of normal numbers; infinity and NaN as they are.
inline Floats logarithm(Floats x) {
  const Ints bits = std::bit_cast<Ints>(x);
  const Floats exponent = __builtin_convertvector((bits >> 23) - 127, Floats);
  const auto mantissa = std::bit_cast<Floats>((bits & 0x7fffff) | 0x3f800000);
  const Floats result = exponent * 0.693147181F + logarithm_of_1_plus(mantissa - 1.0F);
  return where(x < all(__builtin_inff()), result, x);
}

/// log(x), also of x near 1, where powers of 2 would cancel; of 0 -infinity, below it NaN.
inline Floats logarithm_of_any(Floats x) {
  constexpr float least_normal = 0x1p-126F;
  const Floats normal = where(x < all(least_normal), x * 0x1p23F, x);
  const Ints bits = std::bit_cast<Ints>(normal);
  const Floats power = __builtin_convertvector((bits >> 23) - 127, Floats);
  const auto whole = std::bit_cast<Floats>((bits & 0x7fffff) | 0x3f800000);
  const Floats mantissa = where(whole < all(1.5F), whole, 0.5F * whole);
  const Floats higher = where(whole < all(1.5F), power, power + 1.0F);
  const Floats exponent = where(x < all(least_normal), higher - 23.0F, higher);
  const Floats result =
      (logarithm_of_1_plus(mantissa - 1.0F) - exponent * 2.12194440e-4F) + exponent * 0.693359375F;
  const Floats of_positive = where(x < all(__builtin_inff()), result, x);  // or NaN
  const Floats of_none = where(x < all(0), all(__builtin_nanf("")), all(-__builtin_inff()));
  return where(all(0) < x, of_positive, where(x <= all(0), of_none, x));
}

inline Floats square_root(Floats x) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_ps(every_lane, x);
#else
  Floats root{};
  for (int lane = 0; lane < lanes; ++lane) {
    root[lane] = std::sqrt(x[lane]);
  }
  return root;
#endif
}

/// sin(x), or cos(x): x is a multiple of pi, or lies in the middle of two, and a rest of at most
/// half a pi, of which the sine is a polynomial. Pi in three parts keeps the rest exact to 2^13.
inline Floats sine(Floats x, bool is_cosine) {
  constexpr float most = 8192;
  for (int i = 0; i < lanes; ++i) {
    if (!(std::abs(x[i]) <= most)) {  // or NaN
      Floats one_by_one{};
      for (int lane = 0; lane < lanes; ++lane) {
        one_by_one[lane] = is_cosine ? std::cos(x[lane]) : std::sin(x[lane]);
      }
      return one_by_one;
    }
  }
  constexpr float shifter = 0x1.8p23F;  // added, it leaves no place for digits behind the point
  const float half = is_cosine ? 0.5F : 0.0F;
  const Floats shifted = (x * 0.318309886F + half) + shifter;
  const Floats n = (shifted - shifter) - half;
  const Floats r = ((x - n * 3.140625F) - n * 9.67025756835938e-4F) - n * 6.2771141529083e-7F;
  const Floats s = r * r;
  Floats p = all(2.6083159809786593541503e-6F);
  p = p * s - 1.981069071916863322258e-4F;
  p = p * s + 8.33307858556509017944336e-3F;
  p = p * s - 0.166666597127914428710938F;
  const Floats of_rest = r + r * (s * p);
  const Ints is_odd = (std::bit_cast<Ints>(shifted) & 1) != 0;
  return where(is_odd, -of_rest, of_rest);
}

/// What the formulas of activations-inl.h and functions.h are written in, of vectors.
struct VectorMaths {
  using Number = Floats;
  static Floats number(double x) { return all(static_cast<float>(x)); }
  template <class Condition>
  static Floats where(Condition condition, Floats then, Floats otherwise) {
    return cpu::where(condition, then, otherwise);
  }
  template <class Condition>
  static Floats only_where(Condition condition, Floats then) {
    return cpu::where(condition, then, all(0));
  }
  static Floats absolute(Floats x) { return cpu::where(x < all(0), -x, x); }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return a * b + c; }
  static Floats exponential(Floats x) { return cpu::exponential(x); }
  /// As (e^x + 1) tanh(x / 2), which loses no digits where x is small.
  static Floats exponential_minus_1(Floats x) {
    return (cpu::exponential(x) + 1.0F) * hyperbolic_tangent(0.5F * x);
  }
  static Floats logarithm(Floats x) { return cpu::logarithm_of_any(x); }
  static Floats logarithm_of_1_plus(Floats x) { return cpu::logarithm_of_1_plus(x); }
  static Floats square_root(Floats x) { return cpu::square_root(x); }
  static Floats sine(Floats x) { return cpu::sine(x, false); }
  static Floats cosine(Floats x) { return cpu::sine(x, true); }
  static Floats hyperbolic_tangent(Floats x) { return rational_tanh(VectorMaths(), x); }
  static Floats normal_probability(Floats x) { return normal_probability_of(VectorMaths(), x); }
  static Floats normal_density(Floats x) { return normal_density_of(VectorMaths(), x); }
};

inline Floats sigmoid(Floats x) { return sigmoid_of(VectorMaths(), x); }
inline Floats hyperbolic_tangent(Floats x) { return VectorMaths::hyperbolic_tangent(x); }

}  // namespace crossover::cpu
