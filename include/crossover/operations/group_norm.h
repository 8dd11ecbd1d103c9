// SPDX-License-Identifier: Apache-2.0
// Group normalization of images, and its gradients (Wu & He 2018).
#pragma once

#include <cstdint>

#include "crossover/operation.h"

namespace crossover {

/// y = scale * (x - mean) * inverse_deviation + shift, where mean is that of a group of
/// neighbouring channels of an image over height and width, and inverse_deviation 1 / sqrt(variance
/// + epsilon), with the biased variance. x and y [batch, channels, height, width], both T; scale
/// and shift [channels], mean and inverse_deviation [batch, groups], all f32. `groups` divides the
/// channels.
struct GroupNorm {
  Id x = none, scale = none, shift = none;
  Id y = none, mean = none, inverse_deviation = none;
  std::int64_t groups = 1;
  double epsilon = 1e-5;

  static constexpr const char* name = "GroupNorm";
  static constexpr OpCategory category = OpCategory::normalization;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("scale", scale);
    see.reads("shift", shift);
    see.writes("y", y);
    see.writes("mean", mean);
    see.writes("inverse_deviation", inverse_deviation);
    see.value("groups", groups);
    see.value("epsilon", epsilon);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Gradients of a GroupNorm from dy, like its y. With x' = (x - mean) * inverse_deviation and
/// dz = dy * scale: dshift = sum dy and dscale = sum dy x' of each channel;
/// dx = inverse_deviation * (dz - (sum dz + x' sum dz x') / count), with the sums and the count of
/// the group of an image. x, dy and dx are T; the others are f32.
struct GroupNormGrad {
  Id x = none, scale = none, mean = none, inverse_deviation = none, dy = none;
  Id dx = none, dscale = none, dshift = none;
  std::int64_t groups = 1;

  static constexpr const char* name = "GroupNormGrad";
  static constexpr OpCategory category = OpCategory::normalization;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("scale", scale);
    see.reads("mean", mean);
    see.reads("inverse_deviation", inverse_deviation);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.writes("dscale", dscale);
    see.writes("dshift", dshift);
    see.value("groups", groups);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
