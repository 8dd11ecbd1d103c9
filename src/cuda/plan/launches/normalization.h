// SPDX-License-Identifier: Apache-2.0
// Normalization. Arrays of parameters, their gradients and statistics are f32.
#pragma once

#include <cstdint>

#include "crossover/activation.h"
#include "crossover/operation.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

// ---- Of batches of images, which in plain layout are f32. Each way takes three launches: sums of
// parts of the rows, the numbers of a channel; a small one that joins these; and a pass that
// writes. Arrays of parameters and statistics have [channels].

/// What the first launch leaves to the second: of each of `chunks` parts of the rows, means and
/// sums of squared distances to them, or sums of dz and of dz x'.
template <template <class> class At>
struct ChannelSums {
  ChannelView images;
  std::int64_t chunks = 1;
  At<float> partial;  // [chunks, 2, channels]
};

/// Of each part by sums of what its numbers are apart from one of them, so that no mean that is
/// large against the deviation harms.
template <template <class> class At>
struct BatchNormStatisticsArguments {
  At<const void> x;
  ChannelSums<At> sums;
  static constexpr OpCategory category = OpCategory::normalization;
};
using BatchNormStatisticsLaunch = BatchNormStatisticsArguments<Planned>;
void call(const BatchNormStatisticsArguments<Called>& of, const Site& site);

/// Joins them (Chan, Golub, LeVeque 1979).
template <template <class> class At>
struct BatchNormMomentsArguments {
  ChannelSums<At> sums;
  At<float> mean, inverse_deviation;
  float epsilon = 0;
  static constexpr OpCategory category = OpCategory::normalization;
};
using BatchNormMomentsLaunch = BatchNormMomentsArguments<Planned>;
void call(const BatchNormMomentsArguments<Called>& of, const Site& site);

template <template <class> class At>
struct BatchNormArguments {
  At<const void> x;
  At<const float> scale, shift;
  At<const void> addend;  // or none
  At<void> y;
  At<const float> mean, inverse_deviation;
  ChannelView images;
  Activation activation = Activation::identity;
  static constexpr OpCategory category = OpCategory::normalization;
};
using BatchNormLaunch = BatchNormArguments<Planned>;
void call(const BatchNormArguments<Called>& of, const Site& site);

template <template <class> class At>
struct BatchNormGradSumsArguments {
  At<const void> x;
  At<const float> mean, inverse_deviation;
  At<const void> y;  // or none, where the activation is identity
  At<const void> dy;
  At<const void> dy_more;  // or none
  ChannelSums<At> sums;
  Activation activation = Activation::identity;
  static constexpr OpCategory category = OpCategory::normalization;
};
using BatchNormGradSumsLaunch = BatchNormGradSumsArguments<Planned>;
void call(const BatchNormGradSumsArguments<Called>& of, const Site& site);

template <template <class> class At>
struct BatchNormGradTotalsArguments {
  ChannelSums<At> sums;
  At<float> dscale, dshift;
  static constexpr OpCategory category = OpCategory::normalization;
};
using BatchNormGradTotalsLaunch = BatchNormGradTotalsArguments<Planned>;
void call(const BatchNormGradTotalsArguments<Called>& of, const Site& site);

template <template <class> class At>
struct BatchNormGradArguments {
  BatchNormGradSumsArguments<At> of;
  At<const float> scale, dscale, dshift;
  At<void> dx;
  At<void> daddend;  // or none
  static constexpr OpCategory category = OpCategory::normalization;
};
using BatchNormGradLaunch = BatchNormGradArguments<Planned>;
void call(const BatchNormGradArguments<Called>& of, const Site& site);

// ---- Of groups: of images, or of rows, which are images of one pixel and one group. Mean and
// shift are null where rows keep their mean, which then counts as 0. A scale that is null counts as
// 1, a shift as 0.

/// Images [batch, channels, pixels], or channels-last [batch, pixels, channels].
struct GroupedImages {
  std::int64_t batch = 0, channels = 0, pixels = 1, groups = 1;
  Layout layout = Layout::plain;

  [[nodiscard]] std::int64_t means() const { return batch * groups; }
  [[nodiscard]] bool are_rows() const { return pixels == 1 && groups == 1; }
};

/// A warp for each row, a block for each group of an image.
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

/// dx; a warp for each row, a block for each group of an image.
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

/// Over each of `parts` equal parts of the pixels of all images, for each channel: products [parts,
/// channels] = the sums of dy x', which of one part are the scale's gradient; sums [parts,
/// channels], or none, those of dy, the shift's. Plain images are one part.
template <template <class> class At>
struct GroupNormGradSumsArguments {
  At<const void> x;
  At<const float> mean, inverse_deviation;
  At<const void> dy;
  At<float> products, sums;
  GroupedImages images;
  std::int64_t parts = 1;
  static constexpr OpCategory category = OpCategory::normalization;
};
using GroupNormGradSumsLaunch = GroupNormGradSumsArguments<Planned>;
void call(const GroupNormGradSumsArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
