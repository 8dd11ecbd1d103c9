// SPDX-License-Identifier: Apache-2.0
// The two 16-bit floating-point types: rounding to them and reading them back, written once for
// the CPU, for CUDA's host side, and in double for the reference.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "crossover/tensor.h"

namespace crossover {

/// bfloat16: the upper half of a float32, 8 bits of precision.
struct Bf16 {
  std::uint16_t bits = 0;
};

/// IEEE 754 binary16: 11 bits of precision, normal from 2^-14 to 65504.
struct F16 {
  std::uint16_t bits = 0;
};

// ---- float32 and back. To nearest, ties to even; beyond the largest number to infinity; NaN
// stays NaN. No step meets a denormal float32, which a CPU may be told to flush.

constexpr float widened(float x) { return x; }

constexpr float widened(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16U);
}

constexpr float widened(F16 x) {
  constexpr std::uint32_t exponent_bits = 0x7c00U << 13U;
  const std::uint32_t sign = (x.bits & 0x8000U) << 16U;
  std::uint32_t bits = (x.bits & 0x7fffU) << 13U;
  const std::uint32_t exponent = bits & exponent_bits;
  bits += (127U - 15U) << 23U;
  if (exponent == exponent_bits) {  // infinity or NaN
    bits += (128U - 16U) << 23U;
  } else if (exponent == 0) {  // zero or denormal: m * 2^-24 as (2^-14 + m * 2^-24) - 2^-14
    bits += 1U << 23U;
    bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) - 0x1p-14F);
  }
  return std::bit_cast<float>(sign | bits);
}

template <class T>
constexpr T narrowed(float x);

template <>
constexpr float narrowed<float>(float x) {
  return x;
}

template <>
constexpr Bf16 narrowed<Bf16>(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return {static_cast<std::uint16_t>((bits >> 16U) | 0x40U)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U)};
}

template <>
constexpr F16 narrowed<F16>(float x) {
  const auto all = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = all & 0x80000000U;
  std::uint32_t bits = all ^ sign;
  if (bits >= 0x47800000U) {  // 65536 and more, infinity, or NaN
    bits = bits > 0x7f800000U ? 0x7e00U : 0x7c00U;
  } else if (bits < 0x38800000U) {  // below 2^-14: added to 1/2, whose last place is 2^-24
    bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + 0.5F) - 0x3f000000U;
  } else {
    bits = (bits - ((127U - 15U) << 23U) + 0xfffU + ((bits >> 13U) & 1U)) >> 13U;
  }
  return {static_cast<std::uint16_t>((sign >> 16U) | bits)};
}

// ---- the reference's float64

/// x to the nearest number of `precision` bits, ties to even; the leading bit's place is `least` to
/// `most`, and below that all places are multiples of the last one there.
template <int precision, int least, int most>
inline double rounded_to_bits(double x) {
  if (!std::isfinite(x)) {
    return x;
  }
  constexpr int digits = std::numeric_limits<double>::digits;
  if (std::abs(x) < std::ldexp(1.0, least)) {  // added to a number whose last place that is
    const double large = std::ldexp(1.5, least - precision + digits);
    return (x + large) - large;
  }
  constexpr unsigned dropped = digits - precision;
  auto bits = std::bit_cast<std::uint64_t>(x);
  bits += (std::uint64_t{1} << (dropped - 1)) - 1 + ((bits >> dropped) & 1U);
  bits &= ~((std::uint64_t{1} << dropped) - 1);
  const auto rounded = std::bit_cast<double>(bits);
  return std::abs(rounded) < std::ldexp(1.0, most + 1)
             ? rounded
             : std::copysign(std::numeric_limits<double>::infinity(), x);
}

inline double rounded_to_bf16(double x) { return rounded_to_bits<8, -126, 127>(x); }
inline double rounded_to_f16(double x) { return rounded_to_bits<11, -14, 15>(x); }

/// As a tensor of that type has it in the reference.
inline double stored_as(Type type, double x) {
  return type == Type::bf16 ? rounded_to_bf16(x) : type == Type::f16 ? rounded_to_f16(x) : x;
}

// ---- any floating-point type

/// work(T{}) for the T that stores the type: float, Bf16 or F16. Whole numbers are none of them.
template <class Work>
inline auto with_float(Type type, const Work& work) {
  switch (type) {
    case Type::bf16:
      return work(Bf16{});
    case Type::f16:
      return work(F16{});
    case Type::f32:
    case Type::i32:
    case Type::u8:
      break;
  }
  return work(float{});
}

}  // namespace crossover
