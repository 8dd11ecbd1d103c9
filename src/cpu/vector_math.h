// SPDX-License-Identifier: Apache-2.0
// Exponentials of vectors, accurate to about two units in the last place, and what is made of them.
// The compiler's own ask for -ffast-math, which would lose NaN.
#pragma once

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

inline Floats sigmoid(Floats x) { return 1.0F / (1.0F + exponential(-x)); }

/// An odd polynomial near zero, where the difference of exponentials would lose digits (Cephes'
/// tanhf).
inline Floats hyperbolic_tangent(Floats x) {
  const Floats s = x * x;
  Floats p = all(-5.70498872745e-3F);
  p = p * s + 2.06390887954e-2F;
  p = p * s - 5.37397155531e-2F;
  p = p * s + 1.33314422036e-1F;
  p = p * s - 3.33332819422e-1F;
  const Floats small = x + x * s * p;
  const Floats large = 1.0F - 2.0F / (1.0F + exponential(x + x));
  return where(s < all(0.625F * 0.625F), small, large);
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

/// 1 - erf(x), with as many right digits where it is small: by a polynomial near zero, else
/// exp(-x^2) times polynomials of 1 / x (Cephes' erff and erfcf).
inline Floats complementary_error(Floats x) {
  const auto polynomial = [](Floats at, const auto& coefficients) {
    Floats p = all(0);
    for (const float coefficient : coefficients) {
      p = p * at + coefficient;
    }
    return p;
  };
  constexpr std::array below_1{
      7.853861353153693e-5F, -8.010193625184903e-4F, 5.188327685732524e-3F, -2.685381193529856e-2F,
      1.128358514861418e-1F, -3.761262582423300e-1F, 1.128379165726710F};
  constexpr std::array below_2{
      2.326819970068386e-2F,  -1.387039388740657e-1F, 3.687424674597105e-1F,
      -5.824733027278666e-1F, 6.210004621745983e-1F,  -4.944515323274145e-1F,
      3.404879937665872e-1F,  -2.741127028184656e-1F, 5.638259427386472e-1F};
  constexpr std::array above_2{-1.047766399936249e1F,  1.297719955372516e1F, -7.495518717768503F,
                               2.921019019210786F,     -1.015265279202700F,  4.218463358204948e-1F,
                               -2.820767439740514e-1F, 5.641895067754075e-1F};
  const Floats s = x * x;
  const Floats size = where(x < all(0), -x, x);
  const Floats q = 1.0F / size;
  const Floats p = where(size < all(2), polynomial(q * q, below_2), polynomial(q * q, above_2));
  const Floats tail = exponential(-s) * q * p;
  const Floats large = where(x < all(0), 2.0F - tail, tail);
  return where(size < all(1), 1.0F - x * polynomial(s, below_1), large);
}

}  // namespace crossover::cpu
