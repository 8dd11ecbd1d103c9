// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

/// Logits [batch, classes], or [time, batch, classes] with labels [batch, time].
void plan_operation(const SoftmaxCrossEntropy& loss, StepPlanner& step) {
  const Shape& shape = step.shape(loss.logits);
  const std::int64_t rows = step.rows(loss.logits);
  step.emit(LossLaunch{.logits = step.operand(loss.logits),
                       .labels = step.operand(loss.labels),
                       .loss = step.operand(loss.loss),
                       .dlogits = step.operand(loss.dlogits),
                       .rows = rows,
                       .classes = shape.back(),
                       .time = shape.size() == 3 ? shape[0] : 1,
                       .factor = static_cast<float>(loss.scale) / static_cast<float>(rows),
                       .advance = step.is_last_of_its_kind()});
}

}  // namespace crossover::cuda
