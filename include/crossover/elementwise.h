// SPDX-License-Identifier: Apache-2.0
// Elementwise mathematics, written once: for the CPU, for CUDA kernels, and in double for the
// reference.
#pragma once

#include <cmath>

#include "crossover/activation.h"
#include "crossover/functions.h"
#include "crossover/host_device.h"
#include "crossover/step.h"

namespace crossover {

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
