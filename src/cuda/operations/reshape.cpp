// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const Reshape& op, StepPlanner& step) {
  if (bytes(step.type(op.x)) == 1) {
    throw Unsupported("the GPU backend has no Reshape of " + crossover::to_string(step.type(op.x)));
  }
  step.emit(ReshapeLaunch{step.operand(op.x), step.operand(op.y), step.count(op.x),
                          step.arrangement(op.x), step.arrangement(op.y)});
}

}  // namespace crossover::cuda
