// SPDX-License-Identifier: Apache-2.0
// Activations of vectors, and their derivatives: elementwise.h has the formulas.
#pragma once

#include "crossover/activation.h"
#include "vector_math.h"

namespace crossover::cpu {

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

}  // namespace crossover::cpu
