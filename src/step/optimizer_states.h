// SPDX-License-Identifier: Apache-2.0
// What an optimizer keeps from step to step, and the operation that updates with it.
#pragma once

#include <vector>

#include "crossover/training.h"

namespace crossover {

class OptimizerStates {
 public:
  /// Adds the states of these parameters, whose gradients are in the same order, to the Workload.
  OptimizerStates(const Optimizer& optimizer, std::vector<Id> parameters, std::vector<Id> gradients,
                  Workload& workload);

  [[nodiscard]] Op update(const Workload& workload, double gradient_factor) const;

 private:
  [[nodiscard]] std::vector<Id> add_states(const std::string& prefix, Workload& workload) const;

  const Optimizer& optimizer_;
  std::vector<Id> parameters_, gradients_;
  std::vector<Id> velocities_;  ///< Momentum's
  std::vector<Id> m_, v_;       ///< AdamW's moments
  Id time_ = none;              ///< AdamW's
};

}  // namespace crossover
