// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "crossover/places.h"
#include "operations.h"

namespace crossover::cuda {
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
