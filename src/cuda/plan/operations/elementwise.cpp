// SPDX-License-Identifier: Apache-2.0
#include "../step_planner.h"
#include "crossover/tensor.h"
#include "operations.h"

namespace crossover::cuda {

// ---- Operations that are one pass over whole tensors.

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

// ---- Multiply

namespace {

/// Sets what a launch knows of the places that share a factor.
template <class Launched>
Launched over_places(Launched launch, Id whole, Id factor, const StepPlanner& step) {
  const Shape& shape = step.shape(whole);
  if (!is_gate_of(shape, step.shape(factor))) {
    launch.outer = 1;
    launch.places = 1;
    launch.inner = step.count(whole);
    return launch;
  }
  const Places of(shape);
  const Arrangement lies = step.arrangement(whole);
  launch.outer = of.outer / lies.channels;
  launch.places = of.count;
  launch.inner = of.inner * lies.channels;
  return launch;
}

void plan_product(Id a, Id factor, Id y, StepPlanner& step) {
  const MultiplyLaunch launch{
      .a = step.operand(a), .b = step.operand(factor), .y = step.operand(y)};
  step.emit(over_places(launch, a, factor, step));
}

}  // namespace

void plan_operation(const Multiply& op, StepPlanner& step) { plan_product(op.a, op.b, op.y, step); }

void plan_operation(const MultiplyGrad& op, StepPlanner& step) {
  if (op.da != none) {
    plan_product(op.dy, op.b, op.da, step);
  }
  if (op.db == none) {
    return;
  }
  if (is_gate_of(step.shape(op.dy), step.shape(op.db))) {
    const MultiplySumsLaunch launch{
        .a = step.operand(op.dy), .b = step.operand(op.a), .sums = step.operand(op.db)};
    step.emit(over_places(launch, op.dy, op.db, step));
  } else {
    plan_product(op.dy, op.a, op.db, step);
  }
}

}  // namespace crossover::cuda
