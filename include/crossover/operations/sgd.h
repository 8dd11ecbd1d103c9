// SPDX-License-Identifier: Apache-2.0
// Plain stochastic gradient descent.
#pragma once

#include <vector>

#include "crossover/operation.h"

namespace crossover {

/// w -= learning_rate * (gradient_factor * g) for each parameter. All are f32;
/// gradients may be of 16 bits.
struct Sgd {
  std::vector<Id> parameters, gradients;
  double learning_rate = 0;
  /// Undoes the loss's `scale` in the gradients. A gradient that is not finite makes
  /// its parameter not finite.
  double gradient_factor = 1;

  static constexpr const char* name = "Sgd";
  static constexpr OpCategory category = OpCategory::update;
  template <class See>
  void describe(See& see) const {
    see.reads("parameters", parameters);
    see.writes("parameters", parameters);
    see.reads("gradients", gradients);
    see.value("learning_rate", learning_rate);
    see.value("gradient_factor", gradient_factor);
  }
  [[nodiscard]] static std::vector<const std::vector<Id>*> states() { return {}; }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
