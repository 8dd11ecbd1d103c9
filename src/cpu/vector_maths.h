// SPDX-License-Identifier: Apache-2.0
// What the formulas of functions.h are written in, of vectors.
#pragma once

#include <cmath>

#include "crossover/functions.h"
#include "vector_math.h"

namespace crossover::cpu {

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
};

}  // namespace crossover::cpu
