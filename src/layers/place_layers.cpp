// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/place_layers.h"

#include <cmath>

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t token = 0;

/// Places one after another in time, of sequences of that shape.
std::vector<CopiedBlock> token_and_rest(const Shape& sequence) {
  return joined({{1, sequence[1], sequence[2]}, sequence}, 0);
}

/// That of one place of a sequence.
std::vector<CopiedBlock> place_of(const Shape& sequence, bool is_last) {
  const std::int64_t size = sequence[1] * sequence[2];
  return {{.from_first = is_last ? (sequence[0] - 1) * size : 0, .extents = {{size, 1, 1}}}};
}

}  // namespace

// ---- ClassTokenLayer

Shape ClassTokenLayer::infer(LayerShapes& shapes) const {
  const Shape& sequence = shapes.sequence();
  const std::int64_t width = sequence[2];
  shapes.parameter("token", {1, width}, {.bound = 1 / std::sqrt(static_cast<double>(width))});
  return {1 + sequence[0], any_batch, width};
}

void ClassTokenLayer::forward(LayerForward& step) const {
  const Shape& sequence = step.tensor(step.x()).shape;
  std::vector<CopiedBlock> blocks = token_and_rest(sequence);
  blocks[0].extents = {{sequence[1], 0, sequence[2]}, {sequence[2], 1, 1}};  // the same in all rows
  step.emit(Rearrange{
      .x = {step.parameter(token), step.x()}, .y = {step.y()}, .blocks = std::move(blocks)});
}

void ClassTokenLayer::backward(LayerBackward& step) const {
  const Tensor x = step.tensor(step.x());
  const Id of_token = step.scratch("dtoken", {1, x.shape[1], x.shape[2]}, x.type);
  const Id dx = step.dx();
  Rearrange split{.x = {step.dy()}, .y = {of_token}, .blocks = reversed(token_and_rest(x.shape))};
  if (dx != none) {
    split.y.push_back(dx);
  } else {
    split.blocks.pop_back();
  }
  step.emit(std::move(split));
  step.emit(PositionEmbeddingGrad{.dy = of_token, .dtable = step.gradient(token)});
}

// ---- OnePlaceLayer

Shape OnePlaceLayer::infer(LayerShapes& shapes) const { return {any_batch, shapes.sequence()[2]}; }

void OnePlaceLayer::forward(LayerForward& step) const {
  step.emit(Rearrange{
      .x = {step.x()}, .y = {step.y()}, .blocks = place_of(step.tensor(step.x()).shape, is_last)});
}

void OnePlaceLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(Rearrange{.x = {step.dy()},
                        .y = {dx},
                        .blocks = reversed(place_of(step.tensor(step.x()).shape, is_last))});
  }
}

}  // namespace crossover
