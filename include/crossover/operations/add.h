// SPDX-License-Identifier: Apache-2.0
// The sum of two tensors.
#pragma once

#include "crossover/operation.h"

namespace crossover {

/// y = a + b, elementwise: a residual join, and the sum of gradients where a value is used twice.
struct Add {
  Id a = none, b = none, y = none;

  static constexpr const char* name = "Add";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("a", a);
    see.reads("b", b);
    see.writes("y", y);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
