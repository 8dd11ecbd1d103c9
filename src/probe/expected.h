// SPDX-License-Identifier: Apache-2.0
// What probes start from and what must come out, the same on every device. The numbers are such
// that every result is exact, or rounded in one possible way: checks compare bit for bit. Results
// may be handed over in parts; `first` is the position of a part's first element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "crossover/float16.h"
#include "crossover/functions.h"

namespace crossover::probe {

// Copies: a pattern of bytes that repeats nowhere. None of them is zero, as a spoiled one is.

inline constexpr int spoiled_byte = 0;

/// `salt` tells the blocks of one probe apart. `first` is a multiple of 8.
void fill_pattern(std::span<std::byte> to, std::int64_t first, std::uint64_t salt);
void check_pattern(std::span<const std::byte> got, std::int64_t first, std::uint64_t salt);

// Fused multiply-adds. Spoiled results, of all these, are zero: no right one is.

inline constexpr float fma_factor = 1.0F - 1.0F / 4096;
inline constexpr float fma_summand = 1.0F / 4096;
/// Prime to the size of a block of threads: chains of one thread, a block apart, must start at
/// different values, or a compiler may compute one of them and copy it.
inline constexpr int fma_starts = 61;
CROSSOVER_HOST_DEVICE constexpr float fma_start(std::int64_t position) {
  return static_cast<float>(position % fma_starts) / 64;
}

class ExpectedFma {
 public:
  explicit ExpectedFma(std::int64_t length);
  void check(std::span<const float> got, std::int64_t first) const;

 private:
  std::vector<float> ends_;  ///< by start, many times over
};

// Triad: whole numbers below 2^24.

inline constexpr float triad_factor = 3.0F;
inline constexpr int triad_b_period = 1021;  // prime, both
inline constexpr int triad_c_period = 509;
CROSSOVER_HOST_DEVICE constexpr float triad_b(std::int64_t position) {
  return static_cast<float>(1 + position % triad_b_period);
}
CROSSOVER_HOST_DEVICE constexpr float triad_c(std::int64_t position) {
  return static_cast<float>(position % triad_c_period);
}
void check_triad(std::span<const float> got, std::int64_t first);

// Matrix product: small whole numbers. For sizes that are powers of two from 128 to 8192, bf16 and
// f16 hold the results, too: 9, 18 ... 576 times 1, 2, 3, 4, 6 or 9.

CROSSOVER_HOST_DEVICE constexpr float matrix_a(std::int64_t row, std::int64_t k) {
  return static_cast<float>((1 + row % 3) * (1 + k / 64 % 2));
}
CROSSOVER_HOST_DEVICE constexpr float matrix_b(std::int64_t k, std::int64_t column) {
  return static_cast<float>((k % 64 == 0 ? 2 : k % 2 == 0 ? -1 : 1) * (1 + column % 3));
}

/// The product of square matrices, row-major.
class ExpectedProduct {
 public:
  explicit ExpectedProduct(std::int64_t size);
  template <class T>  // float, Bf16, F16
  void check(std::span<const T> got, std::int64_t first) const;

 private:
  std::int64_t size_;
  float sum_ = 0;  ///< over k, in the first row and column
};

}  // namespace crossover::probe
