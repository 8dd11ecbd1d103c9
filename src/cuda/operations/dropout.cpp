// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

/// The step lies on the device and is counted there: a graph that is launched again must draw
/// another mask.
void plan_operation(const Dropout& op, StepPlanner& step) {
  step.emit(CountLaunch{step.operand(op.step)});
  step.emit(DropoutLaunch{step.operand(op.x), step.operand(op.y), step.operand(op.step),
                          step.count(op.x), step.arrangement(op.x), op.probability, op.seed});
}

void plan_operation(const DropoutGrad& op, StepPlanner& step) {
  step.emit(DropoutLaunch{step.operand(op.dy), step.operand(op.dx), step.operand(op.step),
                          step.count(op.dy), step.arrangement(op.dy), op.probability, op.seed});
}

}  // namespace crossover::cuda
