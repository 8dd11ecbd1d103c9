// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../planning/step_planner.h"
#include "images.h"

namespace crossover::cuda {

void plan_column_sums(const Operand& matrix, const Operand& sums, std::int64_t rows,
                      std::int64_t columns, bool accumulate, StepPlanner& step) {
  constexpr std::int64_t columns_of_a_block = 32;
  constexpr std::int64_t enough_blocks = 512;
  constexpr std::int64_t least_rows = 256;  // of a part
  constexpr std::int64_t tall = 2048;
  const std::int64_t blocks = (columns + columns_of_a_block - 1) / columns_of_a_block;
  const std::int64_t parts = std::min(enough_blocks / blocks, rows / least_rows);
  if (rows < tall || parts < 2) {
    step.emit(ColumnSumsLaunch{matrix, sums, rows, columns, accumulate});
    return;
  }
  const Operand partial = step.scratch(parts * columns * bytes(Type::f32));
  step.emit(ColumnSumsLaunch{matrix, partial, rows, columns, false, parts});
  step.emit(ColumnSumsLaunch{partial, sums, parts, columns, accumulate});
}

}  // namespace crossover::cuda
