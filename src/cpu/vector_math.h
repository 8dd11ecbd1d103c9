// SPDX-License-Identifier: Apache-2.0
// Functions of vectors.
#pragma once

#include <array>
#include <cmath>

#include "crossover/activation.h"
#include "vector.h"

namespace crossover::cpu {

#include "approximations-inl.h"

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
  static Floats hyperbolic_tangent(Floats x) { return rational_tanh(VectorMaths(), x); }
  static Floats normal_probability(Floats x) { return normal_probability_of(VectorMaths(), x); }
  static Floats normal_density(Floats x) { return normal_density_of(VectorMaths(), x); }
};

inline Floats sigmoid(Floats x) { return sigmoid_of(VectorMaths(), x); }
inline Floats hyperbolic_tangent(Floats x) { return VectorMaths::hyperbolic_tangent(x); }

}  // namespace crossover::cpu
