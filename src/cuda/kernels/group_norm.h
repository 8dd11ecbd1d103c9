// SPDX-License-Identifier: Apache-2.0
// Group normalization of images [batch, channels, pixels], or channels-last [batch, pixels,
// channels]. Parameters, their gradients and statistics are f32.
#pragma once

#include <cstdint>

#include "arrangement.h"
#include "crossover/operation.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

struct GroupedImages {
  std::int64_t batch = 0, channels = 0, pixels = 0, groups = 1;
  Layout layout = Layout::plain;
};

/// A block for each group of an image.
template <template <class> class At>
struct GroupNormArguments {
  At<const void> x;
  At<const float> scale, shift;
  At<void> y;
  At<float> mean, inverse_deviation;
  GroupedImages images;
  float epsilon = 0;
  static constexpr OpCategory category = OpCategory::normalization;
};
using GroupNormLaunch = GroupNormArguments<Planned>;
void call(const GroupNormArguments<Called>& of, const Site& site);

/// dx; a block for each group of an image.
template <template <class> class At>
struct GroupNormGradArguments {
  At<const void> x;
  At<const float> scale, mean, inverse_deviation;
  At<const void> dy;
  At<void> dx;
  GroupedImages images;
  static constexpr OpCategory category = OpCategory::normalization;
};
using GroupNormGradLaunch = GroupNormGradArguments<Planned>;
void call(const GroupNormGradArguments<Called>& of, const Site& site);

/// dscale and dshift; a block for each channel, or, channels-last, for 32 of them.
template <template <class> class At>
struct GroupNormGradSumsArguments {
  At<const void> x;
  At<const float> mean, inverse_deviation;
  At<const void> dy;
  At<float> dscale, dshift;
  GroupedImages images;
  static constexpr OpCategory category = OpCategory::normalization;
};
using GroupNormGradSumsLaunch = GroupNormGradSumsArguments<Planned>;
void call(const GroupNormGradSumsArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
