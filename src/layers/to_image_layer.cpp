// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/to_image_layer.h"

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t dimensions_of_vectors = 2;

}  // namespace

Shape ToImageLayer::infer(LayerShapes& shapes) const {
  const Shape& read = shapes.input();
  const bool is_vector = channels > 0 && read.size() == dimensions_of_vectors &&
                         read.front() == any_batch && read.back() != any_batch;
  const Shape sequence = is_vector ? Shape{read.back(), any_batch, 1} : shapes.sequence();
  const std::int64_t time = sequence[0];
  const std::int64_t width = sequence[2];
  const std::int64_t own = channels == 0 ? width : channels;
  const bool fits = channels == 0 || time % channels == 0;
  const std::int64_t pixels = channels == 0 ? time : time / channels * width;
  shapes.require(fits && pixels % height == 0,
                 "makes no image of " + std::to_string(own) + " channels and height " +
                     std::to_string(height) + " of " + std::to_string(time) + " places");
  return {any_batch, own, height, pixels / height};
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
  const Shape& read = step.tensor(step.x()).shape;
  if (read.size() == dimensions_of_vectors) {
    step.emit(Reshape{.x = step.x(), .y = step.y()});
  } else {
    step.emit(Rearrange{.x = {step.x()}, .y = {step.y()}, .blocks = blocks(read)});
  }
}

void ToImageLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  const Shape& read = step.tensor(step.x()).shape;
  if (dx == none) {
    return;
  }
  if (read.size() == dimensions_of_vectors) {
    step.emit(Reshape{.x = step.dy(), .y = dx});
  } else {
    step.emit(Rearrange{.x = {step.dy()}, .y = {dx}, .blocks = reversed(blocks(read))});
  }
}

}  // namespace crossover
