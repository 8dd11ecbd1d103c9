// SPDX-License-Identifier: Apache-2.0
// What becomes of gradients: their sum over ranks, and the update of parameters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "crossover/operation.h"
#include "crossover/update_rules.h"

namespace crossover {

/// What `rule` makes of each parameter and its gradient g, which stands for gradient_factor *
/// gradient. All are f32; gradients may be of 16 bits. A gradient that is not finite makes its
/// parameter not finite.
struct Update {
  Optimizer rule;
  std::vector<Id> parameters, gradients;
  std::vector<std::vector<Id>> states;  ///< the rule's lists, each with one for each parameter
  std::vector<double> weight_decay;     ///< AdamW's: one for each parameter; or empty, and 0
  /// Of a rule that counts them: one i32 that the operation increments before use.
  Id step = none;
  double gradient_factor = 1;  ///< undoes the loss's `scale` in the gradients

  [[nodiscard]] const char* name() const {
    return std::visit([](const auto& by) { return by.name; }, rule);
  }
  /// Of the parameter at that place in the list.
  [[nodiscard]] double decay_of(std::size_t parameter) const {
    return weight_decay.empty() ? 0 : weight_decay[parameter];
  }
  static constexpr OpCategory category = OpCategory::update;
  template <class See>
  void describe(See& see) const {
    see.reads("parameters", parameters);
    see.writes("parameters", parameters);
    std::visit(
        [&](const auto& by) {
          for (std::size_t i = 0; i < std::min(by.states.size(), states.size()); ++i) {
            see.reads(by.states[i].list, states[i]);
            see.writes(by.states[i].list, states[i]);
          }
          see.reads("gradients", gradients);
          see.newer_reads("step", step);
          if (step != none) {
            see.writes("step", step);
          }
          see.newer_value("weight_decay", weight_decay, {});
          by.describe(see);
        },
        rule);
    see.value("gradient_factor", gradient_factor);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Each of the tensors, all f32, becomes its sum over all ranks (MPI 4.0, 6.9.6 MPI_Allreduce).
/// What a rank adds is weighted already: the `scale` of its loss is that of its rows in the whole
/// batch.
struct AllReduce {
  std::vector<Id> tensors;
  std::int64_t ranks = 1;

  static constexpr const char* name = "AllReduce";
  static constexpr OpCategory category = OpCategory::communication;
  template <class See>
  void describe(See& see) const {
    see.reads("tensors", tensors);
    see.writes("tensors", tensors);
    see.value("ranks", ranks);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
