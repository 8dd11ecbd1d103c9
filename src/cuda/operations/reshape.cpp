// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const Reshape& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no Reshape yet");
}

}  // namespace crossover::cuda
