// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/pad_layer.h"

#include <algorithm>
#include <array>

#include "contexts.h"

namespace crossover {

Shape PadLayer::infer(LayerShapes& shapes) const {
  Shape shape = shapes.image();
  const Shape behind{0, back, bottom, right};
  const Shape in_front = before();
  for (std::size_t axis = 1; axis < shape.size(); ++axis) {
    const std::int64_t cut =
        std::max<std::int64_t>(-in_front[axis], 0) + std::max<std::int64_t>(-behind[axis], 0);
    shapes.require(cut < shape[axis], "cuts off " + std::to_string(cut) + " of " +
                                          std::to_string(shape[axis]) +
                                          (axis == 1   ? " channels"
                                           : axis == 2 ? " rows"
                                                       : " columns"));
    shape[axis] += in_front[axis] + behind[axis];
  }
  return shape;
}

void PadLayer::forward(LayerForward& step) const {
  const CopiedBlock kept =
      within(step.tensor(step.x()).shape, step.tensor(step.y()).shape, before());
  step.emit(Rearrange{.x = {step.x()}, .y = {step.y()}, .blocks = {kept}});
}

/// What is cut off has no gradient from here: zeros, to which those of other readers are added.
void PadLayer::backward(LayerBackward& step) const {
  const CopiedBlock kept =
      within(step.tensor(step.x()).shape, step.tensor(step.y()).shape, before());
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(Rearrange{.x = {step.dy()}, .y = {dx}, .blocks = reversed({kept})});
  }
}

}  // namespace crossover
