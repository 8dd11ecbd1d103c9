// SPDX-License-Identifier: Apache-2.0
// The mean of each channel of an image, or of a sequence over time, and its gradient.
#pragma once

#include "crossover/operation.h"

namespace crossover {

/// y [batch, channels] = the mean of x [batch, channels, height, width] over height and width, or
/// of x [time, batch, channels] over time. Both T.
struct GlobalAveragePool {
  Id x = none, y = none;

  static constexpr const char* name = "GlobalAveragePool";
  static constexpr OpCategory category = OpCategory::pooling;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dx, like x above, = dy [batch, channels] / (height * width), or / time. Both T.
struct GlobalAveragePoolGrad {
  Id dy = none, dx = none;

  static constexpr const char* name = "GlobalAveragePoolGrad";
  static constexpr OpCategory category = OpCategory::pooling;
  template <class See>
  void describe(See& see) const {
    see.reads("dy", dy);
    see.writes("dx", dx);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
