// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const Embedding& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no Embedding yet");
}

void plan_operation(const EmbeddingGrad& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no EmbeddingGrad yet");
}

}  // namespace crossover::cuda
