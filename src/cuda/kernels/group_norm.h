// SPDX-License-Identifier: Apache-2.0
// Normalization of groups: of images, or of rows, which are images of one pixel and one group.
// Parameters, their gradients and statistics are f32. Mean and shift are null where rows keep their
// mean, which then counts as 0. A scale that is null counts as 1, a shift as 0.
#pragma once

#include <cstdint>

#include "arrangement.h"
#include "crossover/operation.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

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
