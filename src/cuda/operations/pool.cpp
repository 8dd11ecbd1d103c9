// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const MaxPool& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no MaxPool yet");
}

void plan_operation(const MaxPoolGrad& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no MaxPoolGrad yet");
}

void plan_operation(const AveragePool& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no AveragePool yet");
}

void plan_operation(const AveragePoolGrad& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no AveragePoolGrad yet");
}

}  // namespace crossover::cuda
