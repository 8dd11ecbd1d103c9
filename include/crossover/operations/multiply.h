// SPDX-License-Identifier: Apache-2.0
// The product of two tensors, of which one may be a gate, and its gradients.
#pragma once

#include "crossover/operation.h"
#include "crossover/places.h"

namespace crossover {

/// y = a b, elementwise. b has the shape of a, or one number for all places of it: [batch,
/// channels] or [batch, channels, 1, 1] of images [batch, channels, height, width], [batch, width]
/// of sequences [time, batch, width]. All T.
struct Multiply {
  Id a = none, b = none, y = none;

  static constexpr const char* name = "Multiply";
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

/// da = dy b and db = dy a, that of a gate summed over the places. One of them may be none, and
/// then what only it needs may be, too. All T.
struct MultiplyGrad {
  Id a = none, b = none, dy = none;
  Id da = none, db = none;

  static constexpr const char* name = "MultiplyGrad";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("a", a);
    see.reads("b", b);
    see.reads("dy", dy);
    see.writes("da", da);
    see.writes("db", db);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Whether a tensor of shape b has one number for all places of a.
bool is_gate_of(const Shape& a, const Shape& b);

}  // namespace crossover
