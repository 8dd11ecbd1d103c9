// SPDX-License-Identifier: Apache-2.0
// An activation by itself, and its gradient.
#pragma once

#include "crossover/activation.h"
#include "crossover/operation.h"

namespace crossover {

/// y = activation(x), elementwise.
struct Activate {
  Id x = none, y = none;
  Activation activation = Activation::identity;

  static constexpr const char* name = "Activate";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
    see.value("activation", activation);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dx = dy * activation', elementwise. The derivative is computed from `at`: the activation's input
/// x where derivative_takes_input(), else its result y.
struct ActivateGrad {
  Id at = none, dy = none, dx = none;
  Activation activation = Activation::identity;

  static constexpr const char* name = "ActivateGrad";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads(derivative_takes_input(activation) ? "x" : "y", at);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.value("activation", activation);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
