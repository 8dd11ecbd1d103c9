// SPDX-License-Identifier: Apache-2.0
// Operations that are one pass over whole tensors.
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const Activate& activate, StepPlanner& step) {
  step.emit(ActivateLaunch{step.operand(activate.x), step.operand(activate.y),
                           step.count(activate.x), activate.activation});
}

void plan_operation(const ActivateGrad& grad, StepPlanner& step) {
  step.emit(ActivateGradLaunch{step.operand(grad.y), step.operand(grad.dy), step.operand(grad.dx),
                               step.count(grad.y), grad.activation});
}

void plan_operation(const Add& add, StepPlanner& step) {
  step.emit(
      AddLaunch{step.operand(add.a), step.operand(add.b), step.operand(add.y), step.count(add.y)});
}

}  // namespace crossover::cuda
