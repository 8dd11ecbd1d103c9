// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/upsample_layer.h"

#include "contexts.h"

namespace crossover {
namespace {

/// The pixels that each of the smaller image becomes.
Window repeated(const Pair& factor) { return {.size = factor, .stride = factor}; }

}  // namespace

Shape UpsampleLayer::infer(LayerShapes& shapes) const {
  Shape shape = shapes.image();
  constexpr std::int64_t most_rows = std::int64_t{1} << 31U;
  shapes.require(factor.down <= most_rows / shape[2] && factor.across <= most_rows / shape[3],
                 "gives images of more than 2^31 rows or columns");
  shape[2] *= factor.down;
  shape[3] *= factor.across;
  return shape;
}

void UpsampleLayer::forward(LayerForward& step) const {
  step.emit(
      AveragePoolGrad{.dy = step.x(), .dx = step.y(), .window = repeated(factor), .sums = true});
}

void UpsampleLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(AveragePool{.x = step.dy(), .y = dx, .window = repeated(factor), .sums = true});
  }
}

}  // namespace crossover
