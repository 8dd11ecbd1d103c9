// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const Convolution& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no Convolution yet");
}

void plan_operation(const ConvolutionGrad& /*op*/, StepPlanner& /*step*/) {
  throw Unsupported("the GPU backend has no ConvolutionGrad yet");
}

}  // namespace crossover::cuda
