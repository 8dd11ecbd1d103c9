// SPDX-License-Identifier: Apache-2.0
// Gradients that layers add to begin at zero.
#pragma once

#include <vector>

#include "crossover/operation.h"

namespace crossover {

/// Each element of the tensors, all f32, becomes 0.
struct Zero {
  std::vector<Id> tensors;

  static constexpr const char* name = "Zero";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.writes("tensors", tensors);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
