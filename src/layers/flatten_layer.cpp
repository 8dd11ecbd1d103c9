// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/flatten_layer.h"

#include "contexts.h"

namespace crossover {

Shape FlattenLayer::infer(LayerShapes& shapes) const {
  const Shape& shape = shapes.input();
  shapes.require(shape.front() == any_batch, "can't flatten what lies time first");
  return {any_batch, elements({shape.begin() + 1, shape.end()})};
}

void FlattenLayer::forward(LayerForward& step) const {
  step.emit(Reshape{.x = step.x(), .y = step.y()});
}

void FlattenLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(Reshape{.x = step.dy(), .y = dx});
  }
}

}  // namespace crossover
