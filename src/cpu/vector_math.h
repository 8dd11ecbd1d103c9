// SPDX-License-Identifier: Apache-2.0
// Exponentials of vectors, accurate to about two units in the last place, and the activations made
// of them. The compiler's own ask for -ffast-math, which would lose NaN.
#pragma once

#include "crossover/activation.h"
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

/// gradient * the derivative where the activation gave y.
template <Activation activation>
inline Floats times_derivative(Floats gradient, Floats y) {
  switch (activation) {
    case Activation::relu:
      return where(y > all(0), gradient, all(0));
    case Activation::sigmoid:
      return gradient * (y * (1.0F - y));
    case Activation::identity:
      break;
  }
  return gradient;
}

}  // namespace crossover::cpu
