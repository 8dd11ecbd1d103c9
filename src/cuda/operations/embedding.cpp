// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const Embedding& op, StepPlanner& step) {
  const Shape& tokens = step.shape(op.tokens);
  step.emit(EmbeddingLaunch{step.operand(op.tokens), step.operand(op.table), step.operand(op.y),
                            tokens[0], tokens[1], step.shape(op.table)[1]});
}

void plan_operation(const EmbeddingGrad& op, StepPlanner& step) {
  const Shape& tokens = step.shape(op.tokens);
  step.emit(ZeroLaunch{step.operand(op.dtable), step.count(op.dtable)});
  step.emit(EmbeddingGradLaunch{step.operand(op.tokens), step.operand(op.dy),
                                step.operand(op.dtable), tokens[0], tokens[1],
                                step.shape(op.dtable)[1]});
}

}  // namespace crossover::cuda
