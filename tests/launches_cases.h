// SPDX-License-Identifier: Apache-2.0
// Epochs whose launches are told before they are compiled, for each device.
#pragma once

#include <vector>

#include "crossover/training.h"
#include "support.h"

namespace crossover::test {

/// Small networks, as they are lowered, with what changes the number of launches: optimizer, weight
/// decay, accumulation, activation, a value that several layers read.
inline std::vector<Workload> launches_cases() {
  std::vector<Workload> cases;
  for (const Model& model :
       {mlp("relu", {4, 8, 6, 2}, Activation::relu), mlp("sigmoid", {4, 8, 2}, Activation::sigmoid),
        mlp("linear", {4, 2}, Activation::relu), residual_model()}) {
    for (const Optimizer& optimizer : {Optimizer{SgdOptions{}}, Optimizer{AdamWOptions{}},
                                       Optimizer{AdamWOptions{.weight_decay = 0}}}) {
      for (const std::int64_t accumulate : {1, 2}) {
        cases.push_back(training_epoch(
            model, {.rows = 23, .batch = 5, .optimizer = optimizer, .accumulate = accumulate}));
      }
    }
  }
  return cases;
}

}  // namespace crossover::test
