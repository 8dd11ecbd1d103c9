// SPDX-License-Identifier: Apache-2.0
// The mathematics of single numbers: activations, losses of one element. No container and no text,
// so that a kernel which is compiled when a program runs (src/cuda/kernels/tailored.cuh) has it
// from here, too.
#pragma once

#include <cmath>

#include "crossover/activation.h"
#include "crossover/host_device.h"

namespace crossover {

/// What formulas are written in, of single numbers; src/cpu/ has those of vectors.
template <class T>
struct ScalarMaths {
  using Number = T;
  static CROSSOVER_HOST_DEVICE T number(double x) { return static_cast<T>(x); }
  static CROSSOVER_HOST_DEVICE T where(bool condition, T then, T otherwise) {
    return condition ? then : otherwise;
  }
  static CROSSOVER_HOST_DEVICE T only_where(bool condition, T then) {
    return condition ? then : T(0);
  }
  static CROSSOVER_HOST_DEVICE T exponential(T x) { return std::exp(x); }
  static CROSSOVER_HOST_DEVICE T exponential_minus_1(T x) { return std::expm1(x); }
  static CROSSOVER_HOST_DEVICE T logarithm(T x) { return std::log(x); }
  /// Of x from 0 to 1.
  static CROSSOVER_HOST_DEVICE T logarithm_of_1_plus(T x) { return std::log1p(x); }
  static CROSSOVER_HOST_DEVICE T square_root(T x) { return std::sqrt(x); }
  static CROSSOVER_HOST_DEVICE T sine(T x) { return std::sin(x); }
  static CROSSOVER_HOST_DEVICE T cosine(T x) { return std::cos(x); }
  static CROSSOVER_HOST_DEVICE T hyperbolic_tangent(T x) { return std::tanh(x); }
  /// That a normal variable is below x: by erfc, where 1 + erf would cancel.
  static CROSSOVER_HOST_DEVICE T normal_probability(T x) {
    return T(0.5) * std::erfc(x * T(-0.70710678118654752440));  // 1 / sqrt(2)
  }
  /// Its derivative.
  static CROSSOVER_HOST_DEVICE T normal_density(T x) {
    return T(0.39894228040143267794) * std::exp(T(-0.5) * x * x);  // 1 / sqrt(2 pi)
  }
};

// ---- Activations

template <class T>
CROSSOVER_HOST_DEVICE inline T activate(Activation activation, T x) {
  return with_activation(activation, [=](auto of) { return of.value(ScalarMaths<T>(), x); });
}

/// dy times the derivative at `at`: the activation's input where derivative_takes_input(), else its
/// result.
template <class T>
CROSSOVER_HOST_DEVICE inline T times_derivative(Activation activation, T dy, T at) {
  return with_activation(activation,
                         [=](auto of) { return of.gradient(ScalarMaths<T>(), dy, at); });
}

/// The same of activations whose result y tells the derivative: no code is made of the others.
template <class T>
CROSSOVER_HOST_DEVICE inline T times_derivative_from_result(Activation activation, T dy, T y) {
  if (derivative_takes_input(activation)) {
    __builtin_unreachable();
  }
  return times_derivative(activation, dy, y);
}

// ---- Losses: what a network is trained to make small.

enum class LossFunction {
  cross_entropy,  ///< of softmax and a label: SoftmaxCrossEntropy
  mse,            ///< mean squared error: ElementwiseLoss
  bce,            ///< binary cross-entropy with logits: ElementwiseLoss
};

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
