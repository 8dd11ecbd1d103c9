// SPDX-License-Identifier: Apache-2.0
// A row of a table for each token of a sequence, and the gradient of the table.
#pragma once

#include "crossover/operation.h"

namespace crossover {

/// y [time, batch, width] = row tokens[b, t] of the table, for each t and b.
/// tokens [batch, time] i32, table [vocabulary, width], table and y T. Sequences lie time first
/// behind an Embedding, as in PyTorch.
struct Embedding {
  Id tokens = none, table = none, y = none;

  static constexpr const char* name = "Embedding";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("tokens", tokens);
    see.reads("table", table);
    see.writes("y", y);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dtable [vocabulary, width] = for each row the sum of dy over the positions of its token, zero
/// where it has none. tokens [batch, time] i32, dy [time, batch, width] T, dtable f32.
struct EmbeddingGrad {
  Id tokens = none, dy = none, dtable = none;

  static constexpr const char* name = "EmbeddingGrad";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("tokens", tokens);
    see.reads("dy", dy);
    see.writes("dtable", dtable);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
