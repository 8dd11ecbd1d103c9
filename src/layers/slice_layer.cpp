// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/slice_layer.h"

#include "contexts.h"

namespace crossover {

std::size_t SliceLayer::axis_of(const Shape& shape) const {
  constexpr std::size_t dimensions_of_images = 4;
  const std::size_t last = shape.size() == dimensions_of_images ? 1 : shape.size() - 1;
  return over_time ? 0 : last;
}

Shape SliceLayer::infer(LayerShapes& shapes) const {
  Shape shape = over_time ? shapes.sequence() : shapes.input();
  std::int64_t& extent = shape[axis_of(shape)];
  shapes.require(extent != any_batch, "reads single numbers, not vectors");
  shapes.require(0 <= from && from < to && to <= extent, "slices " + std::to_string(from) + " to " +
                                                             std::to_string(to) + " of " +
                                                             std::to_string(extent));
  extent = to - from;
  return shape;
}

void SliceLayer::forward(LayerForward& step) const {
  const Shape& shape = step.tensor(step.x()).shape;
  step.emit(Rearrange{
      .x = {step.x()}, .y = {step.y()}, .blocks = {part_of(shape, axis_of(shape), from, to)}});
}

/// What it leaves out has no gradient from here: zeros, to which those of other readers are added.
void SliceLayer::backward(LayerBackward& step) const {
  const Shape shape = step.tensor(step.x()).shape;
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(Rearrange{.x = {step.dy()},
                        .y = {dx},
                        .blocks = reversed({part_of(shape, axis_of(shape), from, to)})});
  }
}

}  // namespace crossover
