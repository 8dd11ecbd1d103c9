// SPDX-License-Identifier: Apache-2.0
// Sums, taken in a fixed order.
#pragma once

#include <cstdint>

#include "crossover/operation.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

/// sums [parts, columns] (+)= the sums of matrix [rows, columns] over each of `parts` equal parts
/// of its rows. Only the sums of one part may accumulate.
template <template <class> class At>
struct ColumnSumsArguments {
  At<const void> matrix;
  At<float> sums;
  std::int64_t rows = 0, columns = 0;
  bool accumulate = false;
  std::int64_t parts = 1;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using ColumnSumsLaunch = ColumnSumsArguments<Planned>;
void call(const ColumnSumsArguments<Called>& of, const Site& site);

/// sums [rows] = the sums of each row of matrix [rows, columns], which is f32.
template <template <class> class At>
struct RowSumsArguments {
  At<const float> matrix;
  At<float> sums;
  std::int64_t rows = 0, columns = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using RowSumsLaunch = RowSumsArguments<Planned>;
void call(const RowSumsArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
