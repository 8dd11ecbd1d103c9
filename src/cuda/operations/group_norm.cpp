// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {
namespace {

GroupedImages grouped(Id x, std::int64_t groups, const StepPlanner& step) {
  const Shape& shape = step.shape(x);
  return {.batch = shape[0],
          .channels = shape[1],
          .pixels = shape[2] * shape[3],
          .groups = groups,
          .layout = step.layout(x)};
}

}  // namespace

void plan_operation(const GroupNorm& op, StepPlanner& step) {
  step.emit(GroupNormLaunch{.x = step.operand(op.x),
                            .scale = step.operand(op.scale),
                            .shift = step.operand(op.shift),
                            .y = step.operand(op.y),
                            .mean = step.operand(op.mean),
                            .inverse_deviation = step.operand(op.inverse_deviation),
                            .images = grouped(op.x, op.groups, step),
                            .epsilon = static_cast<float>(op.epsilon)});
}

void plan_operation(const GroupNormGrad& op, StepPlanner& step) {
  const GroupedImages images = grouped(op.x, op.groups, step);
  step.emit(GroupNormGradSumsLaunch{.x = step.operand(op.x),
                                    .mean = step.operand(op.mean),
                                    .inverse_deviation = step.operand(op.inverse_deviation),
                                    .dy = step.operand(op.dy),
                                    .dscale = step.operand(op.dscale),
                                    .dshift = step.operand(op.dshift),
                                    .images = images});
  step.emit(GroupNormGradLaunch{.x = step.operand(op.x),
                                .scale = step.operand(op.scale),
                                .mean = step.operand(op.mean),
                                .inverse_deviation = step.operand(op.inverse_deviation),
                                .dy = step.operand(op.dy),
                                .dx = step.operand(op.dx),
                                .images = images});
}

}  // namespace crossover::cuda
