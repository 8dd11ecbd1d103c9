// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const GlobalAveragePool& op, StepPlanner& step) {
  const Shape& image = step.shape(op.x);
  step.emit(GlobalAveragePoolLaunch{step.operand(op.x), step.operand(op.y), image[0],
                                    image[2] * image[3], image[1]});
}

void plan_operation(const GlobalAveragePoolGrad& op, StepPlanner& step) {
  const Shape& image = step.shape(op.dx);
  step.emit(GlobalAveragePoolGradLaunch{step.operand(op.dy), step.operand(op.dx), image[0],
                                        image[2] * image[3], image[1]});
}

}  // namespace crossover::cuda
