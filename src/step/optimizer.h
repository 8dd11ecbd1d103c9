// SPDX-License-Identifier: Apache-2.0
// What becomes of the gradients of a step: their sum over ranks, and the update of parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "crossover/training.h"

namespace crossover {

// ---- Which gradients the ranks sum at once: buckets, each summed as soon as its last gradient is
// complete, so that the sum can go on beside the rest of the backward pass (Li et al. 2020, PyTorch
// Distributed: Experiences on Accelerating Data Parallel Training).

class GradientBuckets {
 public:
  /// `parameters_of`: by layer, numbers of the parameters that it trains; a tied one is one of
  /// several layers. `gradients`: by parameter, none of a frozen one.
  GradientBuckets(const std::vector<std::vector<std::size_t>>& parameters_of,
                  std::vector<Id> gradients, const TrainingOptions& options)
      : parameters_of_(parameters_of), gradients_(std::move(gradients)), options_(options) {
    for (const Id gradient : gradients_) {
      is_taken_.push_back(gradient == none);
    }
  }

  /// The backward pass is behind that layer: what no layer before it adds to is complete. Appends
  /// the bucket's sum where that fills it.
  void add_complete(std::size_t layer, const Workload& workload, std::vector<Op>& ops);

  /// The backward pass has ended: appends the sum of all that is left.
  void add_rest(std::vector<Op>& ops);

 private:
  void close(std::vector<Op>& ops);

  const std::vector<std::vector<std::size_t>>& parameters_of_;
  const std::vector<Id> gradients_;
  const TrainingOptions& options_;
  std::vector<bool> is_taken_;  ///< by parameter: it is in a bucket, or in none
  std::vector<Id> bucket_;
  std::int64_t bytes_ = 0;
};

// ---- What an optimizer keeps from step to step, and the operation that updates with it.

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
  std::vector<std::vector<Id>> states_;
  Id step_ = none;
};

}  // namespace crossover
