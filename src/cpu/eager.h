// SPDX-License-Identifier: Apache-2.0
// Eager execution: kernel by kernel, each on its number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "bound_steps.h"
#include "crossover/backend.h"
#include "crossover/step.h"

namespace crossover::cpu {

class EagerExecution {
 public:
  /// `steps` must outlive it.
  EagerExecution(const BoundSteps& steps, std::vector<Run> order, int threads);

  /// Runs positions [first, first + count) of the order.
  void run(std::int64_t first, std::int64_t count) const;

  /// See Program::profile().
  [[nodiscard]] Profile profile() const;

 private:
  template <class Visit>
  void for_each_kernel(std::int64_t first, std::int64_t count, const Visit& visit) const;

  const BoundSteps& steps_;
  const std::vector<Run> order_;
  const int threads_;
};

}  // namespace crossover::cpu
