// SPDX-License-Identifier: Apache-2.0
// What tests of the CUDA backend's plans share.
#pragma once

#include <utility>
#include <vector>

#include "../src/cuda/plan/plan.h"
#include "support.h"

namespace crossover::test {

/// A library that has everything.
inline bool everything(const cuda::ProductForm& /*unused*/) { return true; }

/// In batches of 5.
inline Workload epoch(const Model& model, std::int64_t rows, std::int64_t accumulate = 1,
                      Optimizer optimizer = SgdOptions{}) {
  return fuse(training_epoch(
      model,
      {.rows = rows, .batch = 5, .optimizer = std::move(optimizer), .accumulate = accumulate}));
}

/// 4 -> 8 -> 6 -> 2 in batches of 5.
inline Workload mlp_epoch(std::int64_t rows = 10, Activation activation = Activation::relu,
                          std::int64_t accumulate = 1) {
  return epoch(mlp("m", {4, 8, 6, 2}, activation), rows, accumulate);
}

template <class L>
std::vector<L> launches_of(const cuda::StepPlan& step) {
  std::vector<L> all;
  for (const cuda::Launch& launch : step.launches) {
    if (const auto* found = std::get_if<L>(&launch)) {
      all.push_back(*found);
    }
  }
  return all;
}

}  // namespace crossover::test
