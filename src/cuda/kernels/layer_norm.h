// SPDX-License-Identifier: Apache-2.0
// Layer normalization of rows [rows, width]. Parameters, their gradients and statistics are f32.
// Mean and bias are null where rows keep their mean, which then counts as 0. A weight that is null
// counts as 1, a bias as 0.
#pragma once

#include <cstdint>

#include "crossover/operation.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

/// A warp for each row.
template <template <class> class At>
struct LayerNormArguments {
  At<const void> x;
  At<const float> weight, bias;
  At<void> y;
  At<float> mean, inverse_deviation;
  std::int64_t rows = 0, width = 0;
  float epsilon = 0;
  static constexpr OpCategory category = OpCategory::normalization;
};
using LayerNormLaunch = LayerNormArguments<Planned>;
void call(const LayerNormArguments<Called>& of, const Site& site);

/// dx; a warp for each row.
template <template <class> class At>
struct LayerNormGradArguments {
  At<const void> x;
  At<const float> weight, mean, inverse_deviation;
  At<const void> dy;
  At<void> dx;
  std::int64_t rows = 0, width = 0;
  static constexpr OpCategory category = OpCategory::normalization;
};
using LayerNormGradLaunch = LayerNormGradArguments<Planned>;
void call(const LayerNormGradArguments<Called>& of, const Site& site);

/// Over each of `parts` equal parts of the rows, for each column: products [parts, width] = the
/// sums of dy x', which of one part are the weight's gradient; sums [parts, width] those of dy, the
/// bias's.
template <template <class> class At>
struct LayerNormGradSumsArguments {
  At<const void> x;
  At<const float> mean, inverse_deviation;
  At<const void> dy;
  At<float> products, sums;
  std::int64_t rows = 0, width = 0, parts = 1;
  static constexpr OpCategory category = OpCategory::normalization;
};
using LayerNormGradSumsLaunch = LayerNormGradSumsArguments<Planned>;
void call(const LayerNormGradSumsArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
