// SPDX-License-Identifier: Apache-2.0
// The same values in another type.
#pragma once

#include "crossover/operation.h"

namespace crossover {

/// y = x in another type, elementwise: from f32, or to it.
struct Cast {
  Id x = none, y = none;

  static constexpr const char* name = "Cast";
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
