// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const Lstm& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no Lstm yet");
}

void plan_operation(const LstmGrad& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no LstmGrad yet");
}

}  // namespace crossover::cuda
