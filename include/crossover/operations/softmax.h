// SPDX-License-Identifier: Apache-2.0
// The softmax of rows, and its gradient.
#pragma once

#include <cstdint>

#include "crossover/operation.h"

namespace crossover {

/// y = exp(x) / the sum of exp(x), over each of `heads` equal parts of a row [.., heads keys].
/// causal: row (t, b) of a sequence [time, batch, heads keys] sees the keys up to t, and y is 0
/// behind them. x and y are T.
struct Softmax {
  Id x = none, y = none;
  std::int64_t heads = 1;
  bool causal = false;

  static constexpr const char* name = "Softmax";
  static constexpr OpCategory category = OpCategory::normalization;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
    see.value("heads", heads);
    see.value("causal", causal);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;

  /// How many of its first keys a row of that shape sees.
  [[nodiscard]] std::int64_t seen(const Shape& shape, std::int64_t row) const;
};

/// dx = y (dy - the sum of dy y), over the same parts. All T.
struct SoftmaxGrad {
  Id y = none, dy = none, dx = none;
  std::int64_t heads = 1;

  static constexpr const char* name = "SoftmaxGrad";
  static constexpr OpCategory category = OpCategory::normalization;
  template <class See>
  void describe(See& see) const {
    see.reads("y", y);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.value("heads", heads);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
