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

template <class T>
CROSSOVER_HOST_DEVICE inline T sgd(T w, T g, T learning_rate) {
  return w - learning_rate * g;
}

template <class T>
CROSSOVER_HOST_DEVICE inline void momentum(T& w, T g, T& velocity, T learning_rate, T factor) {
  velocity = factor * velocity + g;
  w -= learning_rate * velocity;
}

/// The factors of one AdamW update that all elements share.
template <class T>
struct AdamWFactors {
  T beta1, one_minus_beta1, beta2, one_minus_beta2, epsilon;
  T step_size;                ///< lr / (1 - beta1^t)
  T inverse_root_correction;  ///< 1 / sqrt(1 - beta2^t)
  T keep;                     ///< 1 - lr * decay
  T gradient_factor;
};

/// The constants of an AdamW update.
struct AdamWConstants {
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, gradient_factor = 1;
};

/// t counts from 1. Computed in double, since 1 - beta loses digits in float.
template <class T>
CROSSOVER_HOST_DEVICE inline AdamWFactors<T> adamw_factors(const AdamWConstants& constants,
                                                           double weight_decay, int t) {
  const double correction1 = 1 - std::pow(constants.beta1, static_cast<double>(t));
  const double correction2 = 1 - std::pow(constants.beta2, static_cast<double>(t));
  return {.beta1 = static_cast<T>(constants.beta1),
          .one_minus_beta1 = static_cast<T>(1 - constants.beta1),
          .beta2 = static_cast<T>(constants.beta2),
          .one_minus_beta2 = static_cast<T>(1 - constants.beta2),
          .epsilon = static_cast<T>(constants.epsilon),
          .step_size = static_cast<T>(constants.learning_rate / correction1),
          .inverse_root_correction = static_cast<T>(1 / std::sqrt(correction2)),
          .keep = static_cast<T>(1 - constants.learning_rate * weight_decay),
          .gradient_factor = static_cast<T>(constants.gradient_factor)};
}

/// What the factors that depend on t are computed from.
template <class T>
struct AdamWClock {
  T learning_rate, log_beta1, log_beta2;
};

/// The same at time t in arithmetic of T alone: 1 - beta^t is -expm1(t ln beta), accurate to a few
/// roundings at any t, since no error accumulates from step to step.
template <class T>
CROSSOVER_HOST_DEVICE inline void set_time(AdamWFactors<T>& f, const AdamWClock<T>& clock, int t) {
  const T correction1 = -std::expm1(static_cast<T>(t) * clock.log_beta1);
  const T correction2 = -std::expm1(static_cast<T>(t) * clock.log_beta2);
  f.step_size = clock.learning_rate / correction1;
  f.inverse_root_correction = 1 / std::sqrt(correction2);
}

template <class T>
inline AdamWFactors<T> adamw_factors(const AdamW& op, double weight_decay, int t) {
  return adamw_factors<T>(AdamWConstants{.learning_rate = op.learning_rate,
                                         .beta1 = op.beta1,
                                         .beta2 = op.beta2,
                                         .epsilon = op.epsilon,
                                         .gradient_factor = op.gradient_factor},
                          weight_decay, t);
}

template <class T>
CROSSOVER_HOST_DEVICE inline void adamw(T& w, T gradient, T& m, T& v, const AdamWFactors<T>& f) {
  const T g = f.gradient_factor * gradient;
  m = f.beta1 * m + f.one_minus_beta1 * g;
  v = f.beta2 * v + f.one_minus_beta2 * g * g;
  w = f.keep * w - f.step_size * m / (std::sqrt(v) * f.inverse_root_correction + f.epsilon);
}

}  // namespace crossover
