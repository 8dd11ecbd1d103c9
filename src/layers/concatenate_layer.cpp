// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/concatenate_layer.h"

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t dimensions_of_images = 4;

std::size_t axis_of(const Shape& shape) {
  return shape.size() == dimensions_of_images ? 1 : shape.size() - 1;
}

}  // namespace

Shape ConcatenateLayer::infer(LayerShapes& shapes) const {
  const std::size_t count = shapes.inputs();
  shapes.require(count > 1, "reads one value, and joins two or more");
  Shape all = shapes.input(0, count);
  const std::size_t axis = axis_of(all);
  shapes.require(all[axis] != any_batch, "reads single numbers, not vectors");
  for (std::size_t i = 1; i < count; ++i) {
    Shape other = shapes.input(i, count);
    shapes.require(other.size() == all.size() && other[axis] != any_batch,
                   "joins values of different shapes");
    const std::int64_t own = std::exchange(other[axis], all[axis]);
    shapes.require(other == all, "joins values of different shapes");
    all[axis] += own;
  }
  return all;
}

void ConcatenateLayer::forward(LayerForward& step) const {
  Rearrange join{.x = {}, .y = {step.y()}, .blocks = {}};
  std::vector<Shape> parts;
  for (std::size_t i = 0; i < step.inputs(); ++i) {
    join.x.push_back(step.x(i));
    parts.push_back(step.tensor(step.x(i)).shape);
  }
  join.blocks = joined(parts, axis_of(parts.front()));
  step.emit(std::move(join));
}

/// Each gets its part; those that nobody asks for are left where they are.
void ConcatenateLayer::backward(LayerBackward& step) const {
  std::vector<Shape> parts;
  for (std::size_t i = 0; i < step.inputs(); ++i) {
    parts.push_back(step.tensor(step.x(i)).shape);
  }
  Rearrange split{.x = {step.dy()}, .y = {}, .blocks = {}};
  for (CopiedBlock& block : reversed(joined(parts, axis_of(parts.front())))) {
    const Id dx = step.dx(static_cast<std::size_t>(block.to));
    if (dx != none) {
      block.to = static_cast<std::int64_t>(split.y.size());
      split.y.push_back(dx);
      split.blocks.push_back(std::move(block));
    }
  }
  if (!split.y.empty()) {
    step.emit(std::move(split));
  }
}

}  // namespace crossover
