// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/to_image_layer.h"

#include "contexts.h"

namespace crossover {

Shape ToImageLayer::infer(LayerShapes& shapes) const {
  const Shape& sequence = shapes.sequence();
  const std::int64_t time = sequence[0];
  const std::int64_t width = sequence[2];
  shapes.require(
      height > 0 && (channels == 0 ? time : time * width) % height == 0 &&
          (channels == 0 || (time % channels == 0 && time / channels * width % height == 0)),
      "makes no image of height " + std::to_string(height) + " of " + std::to_string(time) +
          " places of width " + std::to_string(width));
  return channels == 0 ? Shape{any_batch, width, height, time / height}
                       : Shape{any_batch, channels, height, time / channels * width / height};
}

std::vector<CopiedBlock> ToImageLayer::blocks(const Shape& sequence) const {
  const std::int64_t time = sequence[0];
  const std::int64_t batch = sequence[1];
  const std::int64_t width = sequence[2];
  if (channels == 0) {
    return reversed(as_sequence({batch, width, height, time / height}));
  }
  const std::int64_t places = time / channels;
  const std::int64_t place = batch * width;
  return {{.extents = {{batch, width, time * width},
                       {channels, places * place, places * width},
                       {places, place, width},
                       {width, 1, 1}}}};
}

void ToImageLayer::forward(LayerForward& step) const {
  step.emit(
      Rearrange{.x = {step.x()}, .y = {step.y()}, .blocks = blocks(step.tensor(step.x()).shape)});
}

void ToImageLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(Rearrange{
        .x = {step.dy()}, .y = {dx}, .blocks = reversed(blocks(step.tensor(step.x()).shape))});
  }
}

}  // namespace crossover
