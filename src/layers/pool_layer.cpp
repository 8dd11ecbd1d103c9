// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/pool_layer.h"

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t saved_where = 0;  // the first of what is saved

}  // namespace

// ---- MaxPoolLayer

Shape MaxPoolLayer::infer(LayerShapes& shapes) const {
  return shapes.image_behind(window, shapes.image()[1]);
}

void MaxPoolLayer::forward(LayerForward& step) const {
  const Shape shape = step.tensor(step.y()).shape;
  step.emit(MaxPool{.x = step.x(),
                    .y = step.y(),
                    .where = step.save("where", shape, Type::u8),
                    .window = window});
}

void MaxPoolLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(
        MaxPoolGrad{.where = step.saved(saved_where), .dy = step.dy(), .dx = dx, .window = window});
  }
}

// ---- AveragePoolLayer

Shape AveragePoolLayer::infer(LayerShapes& shapes) const {
  return shapes.image_behind(window, shapes.image()[1]);
}

void AveragePoolLayer::forward(LayerForward& step) const {
  step.emit(AveragePool{.x = step.x(), .y = step.y(), .window = window});
}

void AveragePoolLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(AveragePoolGrad{.dy = step.dy(), .dx = dx, .window = window});
  }
}

}  // namespace crossover
