// SPDX-License-Identifier: Apache-2.0
// A function of each number by itself, and its gradient.
#pragma once

#include <variant>

#include "crossover/functions.h"
#include "crossover/operation.h"

namespace crossover {

using Function = OfFunctions<std::variant>;

/// y = function(x), elementwise.
struct Map {
  Id x = none, y = none;
  Function function;

  static constexpr const char* name = "Map";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
    see.value("function", function);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dx = dy * function'(x), elementwise.
struct MapGrad {
  Id x = none, dy = none, dx = none;
  Function function;

  static constexpr const char* name = "MapGrad";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.value("function", function);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
