// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/to_sequence_layer.h"

#include "contexts.h"

namespace crossover {

Shape ToSequenceLayer::infer(LayerShapes& shapes) const {
  const Shape& image = shapes.image();
  return {image[2] * image[3], any_batch, image[1]};
}

void ToSequenceLayer::forward(LayerForward& step) const {
  step.emit(Rearrange{
      .x = {step.x()}, .y = {step.y()}, .blocks = as_sequence(step.tensor(step.x()).shape)});
}

void ToSequenceLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(Rearrange{
        .x = {step.dy()}, .y = {dx}, .blocks = reversed(as_sequence(step.tensor(step.x()).shape))});
  }
}

}  // namespace crossover
