// SPDX-License-Identifier: Apache-2.0
// Functions of vectors.
#pragma once

#include <cmath>

#include "approximations.h"
#include "crossover/activation.h"
#include "crossover/functions.h"
#include "vector.h"

namespace crossover::cpu {

// ---- Exponentials of vectors, accurate to about two units in the last place, and what is made of
// them. The compiler's own ask for -ffast-math, which would lose NaN.

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

// ---- Activations of vectors, and their derivatives: elementwise.h has the formulas.

inline Floats gelu_tanh_slope(Floats x) {
  return gelu_tanh::constant + gelu_tanh::square * (x * x);
}

inline Floats hardsigmoid(Floats x) { return held(0, x / 6.0F + 0.5F, 1); }

template <Activation activation>
inline Floats activate(Floats x) {
  switch (activation) {
    case Activation::relu:
      return where(x < all(0), all(0), x);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::tanh:
      return hyperbolic_tangent(x);
    case Activation::gelu:
      return x * normal(x).probability;
    case Activation::gelu_tanh:
      return x * sigmoid(x * gelu_tanh_slope(x));
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::relu6:
      return held(0, x, 6);
    case Activation::hardswish:
      return x * hardsigmoid(x);
    case Activation::hardsigmoid:
      return hardsigmoid(x);
    case Activation::leaky_relu:
      return where(x < all(0), 0.01F * x, x);
    case Activation::identity:
      break;
  }
  return x;
}

/// gradient * the derivative, which is taken from `at`: the input of the activation where
/// derivative_takes_input(), else its result.
template <Activation activation>
inline Floats times_derivative(Floats gradient, Floats at) {
  switch (activation) {
    case Activation::relu:
      return where(at > all(0), gradient, all(0));
    case Activation::sigmoid:
      return gradient * (at * (1.0F - at));
    case Activation::tanh:
      return gradient * (1.0F - at * at);
    case Activation::gelu: {
      const auto [density, probability] = normal(at);
      return gradient * (probability + at * density);
    }
    case Activation::gelu_tanh: {
      const Floats slope = gelu_tanh_slope(at);
      const Floats s = sigmoid(at * slope);
      return gradient * (s + at * s * (1.0F - s) * (3.0F * slope - 2.0F * gelu_tanh::constant));
    }
    case Activation::silu: {
      const Floats s = sigmoid(at);
      return gradient * (s * (1.0F + at * (1.0F - s)));
    }
    case Activation::relu6:
      return where(at > all(0), where(at < all(6), gradient, all(0)), all(0));
    case Activation::hardswish:
      return gradient * where(at > all(-3), where(at < all(3), at / 3.0F + 0.5F, all(1)), all(0));
    case Activation::hardsigmoid:
      return where(at > all(0), where(at < all(1), gradient / 6.0F, all(0)), all(0));
    case Activation::leaky_relu:
      return where(at > all(0), gradient, 0.01F * gradient);
    case Activation::identity:
      break;
  }
  return gradient;
}

// ---- What the formulas of functions.h are written in, of vectors.

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

struct VectorMaths {
  using Number = Floats;
  static Floats number(double x) { return all(static_cast<float>(x)); }
  template <class Condition>
  static Floats where(Condition condition, Floats then, Floats otherwise) {
    return cpu::where(condition, then, otherwise);
  }
  static Floats exponential(Floats x) { return cpu::exponential(x); }
  /// As (e^x + 1) tanh(x / 2), which loses no digits where x is small.
  static Floats exponential_minus_1(Floats x) {
    return (cpu::exponential(x) + 1.0F) * cpu::hyperbolic_tangent(0.5F * x);
  }
  static Floats logarithm_of_1_plus(Floats x) { return cpu::logarithm_of_1_plus(x); }
  static Floats square_root(Floats x) {
    Floats root{};
    for (int lane = 0; lane < lanes; ++lane) {
      root[lane] = std::sqrt(x[lane]);
    }
    return root;
  }
  static Floats sine(Floats x) { return cpu::sine(x, false); }
  static Floats cosine(Floats x) { return cpu::sine(x, true); }
  static Floats hyperbolic_tangent(Floats x) { return cpu::hyperbolic_tangent(x); }
  static Floats sigmoid(Floats x) { return cpu::sigmoid(x); }
};

}  // namespace crossover::cpu
