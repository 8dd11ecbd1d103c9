// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const SoftmaxCrossEntropy& loss, StepPlanner& step) {
  const Shape& shape = step.shape(loss.logits);
  step.emit(LossLaunch{.logits = step.operand(loss.logits),
                       .labels = step.operand(loss.labels),
                       .loss = step.operand(loss.loss),
                       .dlogits = step.operand(loss.dlogits),
                       .rows = shape[0],
                       .classes = shape[1],
                       .factor = static_cast<float>(loss.scale) / static_cast<float>(shape[0]),
                       .advance = step.is_last_of_its_kind()});
}

}  // namespace crossover::cuda
