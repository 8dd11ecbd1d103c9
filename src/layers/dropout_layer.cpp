// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/dropout_layer.h"

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t counter = 0;

}  // namespace

Shape DropoutLayer::infer(LayerShapes& shapes) const {
  shapes.require(probability >= 0 && probability < 1, "drops with a probability in [0, 1)");
  shapes.state("step", {1}, Type::i32);
  return shapes.input();
}

void DropoutLayer::forward(LayerForward& step) const {
  step.emit(Dropout{.x = step.x(),
                    .y = step.y(),
                    .step = step.state(counter),
                    .probability = probability,
                    .seed = step.number(),
                    .draws = step.ranks(),
                    .draw = step.rank()});
}

void DropoutLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(DropoutGrad{.dy = step.dy(),
                          .dx = dx,
                          .step = step.state(counter),
                          .probability = probability,
                          .seed = step.number(),
                          .draws = step.ranks(),
                          .draw = step.rank()});
  }
}

}  // namespace crossover
