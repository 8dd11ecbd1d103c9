// SPDX-License-Identifier: Apache-2.0
// Operations that are one pass over whole tensors.
#include <variant>

#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const Activate& activate, StepPlanner& step) {
  step.emit(ActivateLaunch{step.operand(activate.x), step.operand(activate.y),
                           step.count(activate.x), activate.activation});
}

void plan_operation(const ActivateGrad& grad, StepPlanner& step) {
  step.emit(ActivateGradLaunch{step.operand(grad.at), step.operand(grad.dy), step.operand(grad.dx),
                               step.count(grad.at), grad.activation});
}

void plan_operation(const Map& map, StepPlanner& step) {
  step.emit(MapLaunch{step.operand(map.x), step.operand(map.y), step.count(map.x), map.function});
}

void plan_operation(const MapGrad& grad, StepPlanner& step) {
  step.emit(MapGradLaunch{step.operand(grad.x), step.operand(grad.dy), step.operand(grad.dx),
                          step.count(grad.x), grad.function});
}

void plan_operation(const Add& add, StepPlanner& step) {
  step.emit(
      AddLaunch{step.operand(add.a), step.operand(add.b), step.operand(add.y), step.count(add.y)});
}

/// Nothing where an optimizer has written it. Joins the one before it where that is a Cast as
/// well: a step in 16 bits may begin with many.
void plan_operation(const Cast& cast, StepPlanner& step) {
  const Operand kept = step.kept(cast.y);
  const Operand y = step.operand(cast.y);
  if (kept.exists() && kept.offset == y.offset) {
    return;
  }
  const CastSpan<Planned> one{kept.exists() ? kept : step.operand(cast.x), y, step.count(cast.x)};
  auto* before = std::get_if<CastLaunch>(step.last_launch());
  if (before != nullptr && before->casts.size() < max_spans &&
      before->casts.front().x.type == one.x.type && before->casts.front().y.type == one.y.type) {
    before->casts.push_back(one);
  } else {
    step.emit(CastLaunch{{one}});
  }
}

/// The step lies on the device and is counted there: a graph that is launched again must draw
/// another mask.
void plan_operation(const Dropout& op, StepPlanner& step) {
  step.emit(CountLaunch{step.operand(op.step), static_cast<std::int32_t>(op.draws)});
  step.emit(DropoutLaunch{step.operand(op.x), step.operand(op.y), step.operand(op.step),
                          step.count(op.x), step.arrangement(op.x), op.probability, op.seed,
                          static_cast<std::int32_t>(offset_of_mask(op))});
}

void plan_operation(const DropoutGrad& op, StepPlanner& step) {
  step.emit(DropoutLaunch{step.operand(op.dy), step.operand(op.dx), step.operand(op.step),
                          step.count(op.dy), step.arrangement(op.dy), op.probability, op.seed,
                          static_cast<std::int32_t>(offset_of_mask(op))});
}

void plan_operation(const Reshape& op, StepPlanner& step) {
  if (bytes(step.type(op.x)) == 1) {
    throw Unsupported("the GPU backend has no Reshape of " + crossover::to_string(step.type(op.x)));
  }
  step.emit(ReshapeLaunch{step.operand(op.x), step.operand(op.y), step.count(op.x),
                          step.arrangement(op.x), step.arrangement(op.y)});
}

}  // namespace crossover::cuda
