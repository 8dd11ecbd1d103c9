// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/multiply_layer.h"

#include "contexts.h"

namespace crossover {

Shape MultiplyLayer::infer(LayerShapes& shapes) const {
  const Shape& whole = shapes.input(0, 2);
  const Shape& factor = shapes.input(1, 2);
  shapes.require(factor == whole || is_gate_of(whole, factor),
                 "multiplies by neither a value of the same shape nor a number for all pixels or "
                 "time steps");
  return whole;
}

void MultiplyLayer::forward(LayerForward& step) const {
  step.emit(Multiply{.a = step.x(0), .b = step.x(1), .y = step.y()});
}

void MultiplyLayer::backward(LayerBackward& step) const {
  const Id da = step.dx(0);
  const Id db = step.dx(1);
  if (da != none || db != none) {
    step.emit(MultiplyGrad{.a = step.x(0), .b = step.x(1), .dy = step.dy(), .da = da, .db = db});
  }
}

}  // namespace crossover
