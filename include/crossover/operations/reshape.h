// SPDX-License-Identifier: Apache-2.0
// The same elements in another shape.
#pragma once

#include "crossover/operation.h"

namespace crossover {

/// y = x, element by element in row-major order; both have as many, of one type.
struct Reshape {
  Id x = none, y = none;

  static constexpr const char* name = "Reshape";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
