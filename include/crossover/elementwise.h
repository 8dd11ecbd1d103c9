// SPDX-License-Identifier: Apache-2.0
// Elementwise mathematics, written once: for the CPU, for CUDA kernels, and in double for the
// reference.
#pragma once

#include <cmath>

#include "crossover/host_device.h"
#include "crossover/step.h"

namespace crossover {

template <class T>
CROSSOVER_HOST_DEVICE inline T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

/// The probability that a normal variable is below x: by erfc, where 1 + erf would cancel.
template <class T>
CROSSOVER_HOST_DEVICE inline T normal_probability(T x) {
  return T(0.5) * std::erfc(x * T(-0.70710678118654752440));  // 1 / sqrt(2)
}

/// Its derivative.
template <class T>
CROSSOVER_HOST_DEVICE inline T normal_density(T x) {
  return T(0.39894228040143267794) * std::exp(T(-0.5) * x * x);  // 1 / sqrt(2 pi)
}

/// GELU's approximation (1 + tanh(u)) / 2 is sigmoid(2 u): 2 u is x (a + b x^2), where a is
/// 2 sqrt(2 / pi) and b 0.044715 times that.
template <class T>
CROSSOVER_HOST_DEVICE inline T gelu_tanh_slope(T x) {
  return T(1.59576912160573071176) + T(0.07135481627260025) * x * x;
}

/// From 0 to 1.
template <class T>
CROSSOVER_HOST_DEVICE inline T hardsigmoid(T x) {
  const T y = x / T(6) + T(0.5);
  return y < T(0) ? T(0) : y > T(1) ? T(1) : y;
}

template <class T>
CROSSOVER_HOST_DEVICE inline T activate(Activation activation, T x) {
  switch (activation) {
    case Activation::relu:
      return x < T(0) ? T(0) : x;  // in this order NaN passes through, as in PyTorch
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::tanh:
      return std::tanh(x);
    case Activation::gelu:
      return x * normal_probability(x);
    case Activation::gelu_tanh:
      return x * sigmoid(x * gelu_tanh_slope(x));
    case Activation::silu:
      return x * sigmoid(x);
    case Activation::relu6:
      return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
    case Activation::hardswish:
      return x * hardsigmoid(x);
    case Activation::hardsigmoid:
      return hardsigmoid(x);
    case Activation::leaky_relu:
      return x < T(0) ? T(0.01) * x : x;
    case Activation::identity:
      break;
  }
  return x;
}

/// The derivative at the point where the activation gave y; not of those of which
/// derivative_takes_input(). At a kink it is that of the flat side, as in PyTorch.
template <class T>
CROSSOVER_HOST_DEVICE inline T derivative_from_result(Activation activation, T y) {
  switch (activation) {
    case Activation::relu:
      return y > T(0) ? T(1) : T(0);
    case Activation::sigmoid:
      return y * (T(1) - y);
    case Activation::tanh:
      return T(1) - y * y;
    case Activation::relu6:
      return y > T(0) && y < T(6) ? T(1) : T(0);
    case Activation::hardsigmoid:
      return y > T(0) && y < T(1) ? T(1) / T(6) : T(0);
    case Activation::leaky_relu:
      return y > T(0) ? T(1) : T(0.01);
    default:
      return T(1);  // identity
  }
}

/// The derivative at x, of the others.
template <class T>
CROSSOVER_HOST_DEVICE inline T derivative_from_input(Activation activation, T x) {
  switch (activation) {
    case Activation::gelu:
      return normal_probability(x) + x * normal_density(x);
    case Activation::gelu_tanh: {
      // 2 u' is a + 3 b x^2
      const T s = sigmoid(x * gelu_tanh_slope(x));
      return s + x * s * (T(1) - s) * (T(3) * gelu_tanh_slope(x) - T(3.19153824321146142352));
    }
    case Activation::silu: {
      const T s = sigmoid(x);
      return s * (T(1) + x * (T(1) - s));
    }
    case Activation::hardswish:
      return x <= T(-3) ? T(0) : x < T(3) ? x / T(3) + T(0.5) : T(1);
    default:
      return T(1);
  }
}

/// The derivative from what the activation's is taken from: the input, or the result.
template <class T>
CROSSOVER_HOST_DEVICE inline T derivative(Activation activation, T at) {
  return derivative_takes_input(activation) ? derivative_from_input(activation, at)
                                            : derivative_from_result(activation, at);
}

/// Of one element: what it adds to an ElementwiseLoss, and the derivative of that.
template <class T>
struct LossOfOne {
  T value, slope;
};

template <class T>
CROSSOVER_HOST_DEVICE inline LossOfOne<T> elementwise_loss(LossFunction function, T x, T target) {
  if (function == LossFunction::mse) {
    const T difference = x - target;
    return {difference * difference, T(2) * difference};
  }
  const T larger = x < T(0) ? T(0) : x;
  const T e = std::exp(x < T(0) ? x : -x);
  const T less = e / (T(1) + e);  // the smaller of sigmoid(x) and 1 - sigmoid(x)
  // sigmoid(x) - target, which would cancel where the sigmoid comes near a target of 1.
  return {larger - x * target + std::log1p(e), x < T(0) ? less - target : (T(1) - target) - less};
}

}  // namespace crossover
