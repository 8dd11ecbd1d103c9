// SPDX-License-Identifier: Apache-2.0
// Exponentials of vectors, accurate to about two units in the last place, and what is made of them.
// The compiler's own ask for -ffast-math, which would lose NaN.
#pragma once

#include "approximations.h"
#include "vector.h"

namespace crossover::cpu {

using Ints [[gnu::vector_size(vector_bytes)]] = std::int32_t;

/// exp(x): 2^n times a polynomial on half a logarithm of 2 around zero (Cephes' expf). 0 below the
/// least normal number, infinity above the largest, NaN of NaN.
inline Floats exponential(Floats x) {
  constexpr float least = -87.33654F;
  constexpr float most = 88.72283F;
  const Floats inside = where(x < all(least), all(least), where(x > all(most), all(most), x));
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
  // 2^n in two factors, since n may be 128.
  const Ints whole = std::bit_cast<Ints>(shifted) - std::bit_cast<std::int32_t>(shifter);
  const Ints half = whole >> 1;
  const auto power = [](Ints e) { return std::bit_cast<Floats>((e + 127) << 23); };
  const Floats result = p * power(half) * power(whole - half);
  return where(x < all(least), all(0), where(x > all(most), all(__builtin_inff()), result));
}

/// Between both; NaN passes through.
inline Floats held(float least, Floats x, float most) {
  return where(x < all(least), all(least), where(x > all(most), all(most), x));
}

inline Floats sigmoid(Floats x) { return 1.0F / (1.0F + exponential(-x)); }

/// With coefficients from the highest power of `at` to the constant.
template <class Coefficients>
inline Floats polynomial(Floats at, const Coefficients& coefficients) {
  Floats p = all(0);
  for (const float coefficient : coefficients) {
    p = p * at + coefficient;
  }
  return p;
}

inline Floats hyperbolic_tangent(Floats x) {
  const Floats inside = held(-rational_tanh::limit, x, rational_tanh::limit);
  const Floats s = inside * inside;
  return inside * polynomial(s, rational_tanh::numerator) /
         polynomial(s, rational_tanh::denominator);
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

/// Of the standard normal distribution at x: its density, and its integral up to x.
struct Normal {
  Floats density, probability;
};

inline Normal normal(Floats x) {
  const Floats power = exponential(-0.5F * (x * x));
  const Floats t = 1.0F / (1.0F + normal_tail::scale * where(x < all(0), -x, x));
  const Floats beyond = power * (polynomial(t, normal_tail::coefficients) * t);
  return {.density = normal_density_at_0 * power,
          .probability = where(x < all(0), beyond, 1.0F - beyond)};
}

}  // namespace crossover::cpu
