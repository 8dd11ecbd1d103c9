// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const Dropout& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no Dropout yet");
}

void plan_operation(const DropoutGrad& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no DropoutGrad yet");
}

}  // namespace crossover::cuda
