// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const LayerNorm& op, StepPlanner& step) {
  step.emit(LayerNormLaunch{.x = step.operand(op.x),
                            .weight = step.operand(op.weight),
                            .bias = step.operand(op.bias),
                            .y = step.operand(op.y),
                            .mean = step.operand(op.mean),
                            .inverse_deviation = step.operand(op.inverse_deviation),
                            .rows = step.rows(op.x),
                            .width = step.shape(op.x).back(),
                            .epsilon = static_cast<float>(op.epsilon)});
}

namespace {

/// Of many rows in parts, so that few columns occupy a whole GPU.
void plan_parameters(const LayerNormGrad& op, StepPlanner& step) {
  constexpr std::int64_t columns_of_a_block = 32;
  constexpr std::int64_t enough_blocks = 256;
  constexpr std::int64_t least_rows = 64;  // of a part
  const std::int64_t rows = step.rows(op.x);
  const std::int64_t width = step.shape(op.x).back();
  const std::int64_t blocks = (width + columns_of_a_block - 1) / columns_of_a_block;
  const std::int64_t parts = std::min(enough_blocks / blocks, rows / least_rows);
  LayerNormGradSumsLaunch sums{.x = step.operand(op.x),
                               .mean = step.operand(op.mean),
                               .inverse_deviation = step.operand(op.inverse_deviation),
                               .dy = step.operand(op.dy),
                               .products = step.operand(op.dweight),
                               .sums = step.operand(op.dbias),
                               .rows = rows,
                               .width = width};
  if (parts < 2) {
    step.emit(sums);
    return;
  }
  sums.parts = parts;
  sums.products = step.scratch(parts * width * bytes(Type::f32));
  if (op.dbias != none) {
    sums.sums = step.scratch(parts * width * bytes(Type::f32));
  }
  step.emit(sums);
  step.emit_column_sums(sums.products, step.operand(op.dweight), parts, width);
  if (op.dbias != none) {
    step.emit_column_sums(sums.sums, step.operand(op.dbias), parts, width);
  }
}

}  // namespace

void plan_operation(const LayerNormGrad& op, StepPlanner& step) {
  if (op.dweight != none) {
    plan_parameters(op, step);
  }
  if (op.dx != none) {
    step.emit(LayerNormGradLaunch{.x = step.operand(op.x),
                                  .weight = step.operand(op.weight),
                                  .mean = step.operand(op.mean),
                                  .inverse_deviation = step.operand(op.inverse_deviation),
                                  .dy = step.operand(op.dy),
                                  .dx = step.operand(op.dx),
                                  .rows = step.rows(op.x),
                                  .width = step.shape(op.x).back()});
  }
}

}  // namespace crossover::cuda
