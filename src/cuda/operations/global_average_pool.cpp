// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const GlobalAveragePool& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no GlobalAveragePool yet");
}

void plan_operation(const GlobalAveragePoolGrad& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no GlobalAveragePoolGrad yet");
}

}  // namespace crossover::cuda
