// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const BatchNorm& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no BatchNorm yet");
}

void plan_operation(const BatchNormGrad& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no BatchNormGrad yet");
}

}  // namespace crossover::cuda
