// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum.
#pragma once

#include <vector>

#include "crossover/operation.h"

namespace crossover {

/// velocity = momentum * velocity + g; w -= learning_rate * velocity, for each parameter: PyTorch's
/// SGD with momentum. g stands for gradient_factor * gradient, as in Sgd. All are f32; gradients
/// may be of 16 bits.
struct Momentum {
  std::vector<Id> parameters, gradients, velocities;
  double learning_rate = 0, momentum = 0;
  double gradient_factor = 1;

  static constexpr const char* name = "Momentum";
  static constexpr OpCategory category = OpCategory::update;
  template <class See>
  void describe(See& see) const {
    see.reads("parameters", parameters);
    see.writes("parameters", parameters);
    see.reads("velocities", velocities);
    see.writes("velocities", velocities);
    see.reads("gradients", gradients);
    see.value("learning_rate", learning_rate);
    see.value("momentum", momentum);
    see.value("gradient_factor", gradient_factor);
  }
  [[nodiscard]] std::vector<const std::vector<Id>*> states() const { return {&velocities}; }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
