// SPDX-License-Identifier: Apache-2.0
// A trained vector for each place of a sequence, and the gradient of their table.
#pragma once

#include "crossover/operation.h"

namespace crossover {

/// y = x + row t of the table, for each t and b. x and y [time, batch, width], table [time, width],
/// all T.
struct PositionEmbedding {
  Id x = none, table = none, y = none;

  static constexpr const char* name = "PositionEmbedding";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("table", table);
    see.writes("y", y);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dtable [time, width] = the sum of dy [time, batch, width] over the batch. dy T, dtable f32.
struct PositionEmbeddingGrad {
  Id dy = none, dtable = none;

  static constexpr const char* name = "PositionEmbeddingGrad";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("dy", dy);
    see.writes("dtable", dtable);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
