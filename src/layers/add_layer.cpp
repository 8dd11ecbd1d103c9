// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/add_layer.h"

#include "contexts.h"

namespace crossover {

Shape AddLayer::infer(LayerShapes& shapes) const {
  shapes.require(shapes.input(0, 2) == shapes.input(1, 2), "adds values of different shapes");
  return shapes.input(0, 2);
}

void AddLayer::forward(LayerForward& step) const {
  step.emit(Add{.a = step.x(0), .b = step.x(1), .y = step.y()});
}

void AddLayer::backward(LayerBackward& step) const {
  step.pass(0, step.dy());
  step.pass(1, step.dy());
}

}  // namespace crossover
