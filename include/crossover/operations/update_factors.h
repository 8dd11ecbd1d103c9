// SPDX-License-Identifier: Apache-2.0
// The arithmetic of optimizers' updates, with the factors that it is told (update.h): for the CPU,
// for CUDA kernels, also those that are compiled when a program runs, and in double for the
// reference.
#pragma once

#include <cmath>

#include "crossover/host_device.h"

namespace crossover {

template <class T>
struct SgdFactors {
  T learning_rate;  ///< times the gradient factor

  CROSSOVER_HOST_DEVICE void update(T& w, T g, T& /*m*/, T& /*v*/) const { w -= learning_rate * g; }
};

template <class T>
struct MomentumFactors {
  T learning_rate, momentum, gradient_factor;

  CROSSOVER_HOST_DEVICE void update(T& w, T g, T& velocity, T& /*v*/) const {
    velocity = momentum * velocity + gradient_factor * g;
    w -= learning_rate * velocity;
  }
};

/// What the factors that depend on the step are computed from.
template <class T>
struct AdamWClock {
  T learning_rate, log_beta1, log_beta2;
};

template <class T>
struct AdamWFactors {
  T beta1, one_minus_beta1, beta2, one_minus_beta2, epsilon;
  T step_size;                ///< lr / (1 - beta1^t)
  T inverse_root_correction;  ///< 1 / sqrt(1 - beta2^t)
  T keep;                     ///< 1 - lr * decay
  T gradient_factor;

  /// Those of step t in arithmetic of T alone: 1 - beta^t is -expm1(t ln beta), accurate to a few
  /// roundings at any t, since no error accumulates from step to step.
  CROSSOVER_HOST_DEVICE void set_time(const AdamWClock<T>& clock, int t) {
    const T correction1 = -std::expm1(static_cast<T>(t) * clock.log_beta1);
    const T correction2 = -std::expm1(static_cast<T>(t) * clock.log_beta2);
    step_size = clock.learning_rate / correction1;
    inverse_root_correction = 1 / std::sqrt(correction2);
  }

  CROSSOVER_HOST_DEVICE void update(T& w, T gradient, T& m, T& v) const {
    const T g = gradient_factor * gradient;
    m = beta1 * m + one_minus_beta1 * g;
    v = beta2 * v + one_minus_beta2 * g * g;
    w = keep * w - step_size * m / (std::sqrt(v) * inverse_root_correction + epsilon);
  }
};

}  // namespace crossover
