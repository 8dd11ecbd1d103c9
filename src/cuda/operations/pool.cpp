// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {
namespace {

/// Of images x and results y.
Pooling pooling_of(const Window& window, Id x, Id y, const StepPlanner& step) {
  const Shape& image = step.shape(x);
  const Shape& result = step.shape(y);
  if (step.count(x) > std::numeric_limits<std::int32_t>::max()) {
    throw Unsupported("the GPU backend pools at most 2^31 - 1 elements, not " +
                      crossover::to_string(step.shape(x)));
  }
  return {.batch = image[0],
          .channels = image[1],
          .height = image[2],
          .width = image[3],
          .positions_down = result[2],
          .positions_across = result[3],
          .size = window.size,
          .stride = window.stride,
          .padding = window.padding,
          .layout = step.layout(x)};
}

}  // namespace

void plan_operation(const MaxPool& op, StepPlanner& step) {
  step.emit(MaxPoolLaunch{step.operand(op.x), step.operand(op.y), step.operand(op.where),
                          pooling_of(op.window, op.x, op.y, step)});
}

void plan_operation(const MaxPoolGrad& op, StepPlanner& step) {
  step.emit(MaxPoolGradLaunch{step.operand(op.y), step.operand(op.where), step.operand(op.dy),
                              step.operand(op.dx), pooling_of(op.window, op.dx, op.dy, step),
                              op.x_activation});
}

void plan_operation(const AveragePool& op, StepPlanner& step) {
  Pooling pooling = pooling_of(op.window, op.x, op.y, step);
  pooling.sums = op.sums;
  step.emit(AveragePoolLaunch{step.operand(op.x), step.operand(op.y), pooling});
}

void plan_operation(const AveragePoolGrad& op, StepPlanner& step) {
  Pooling pooling = pooling_of(op.window, op.dx, op.dy, step);
  pooling.sums = op.sums;
  step.emit(AveragePoolGradLaunch{step.operand(op.x), step.operand(op.dy), step.operand(op.dx),
                                  pooling, op.x_activation});
}

namespace {

/// The launch takes images; a sequence is one that lies channels-last, of which time steps are the
/// pixels.
template <class Launched>
Launched averaged(const Operand& from, const Operand& to, Id x, const StepPlanner& step) {
  const Shape& shape = step.shape(x);
  if (shape.size() == 3) {
    return {from, to, 1, shape[0], shape[1] * shape[2], Layout::channels_last};
  }
  return {from, to, shape[0], shape[2] * shape[3], shape[1], step.layout(x)};
}

}  // namespace

void plan_operation(const GlobalAveragePool& op, StepPlanner& step) {
  step.emit(averaged<GlobalAveragePoolLaunch>(step.operand(op.x), step.operand(op.y), op.x, step));
}

void plan_operation(const GlobalAveragePoolGrad& op, StepPlanner& step) {
  step.emit(
      averaged<GlobalAveragePoolGradLaunch>(step.operand(op.dy), step.operand(op.dx), op.dx, step));
}

}  // namespace crossover::cuda
