// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/position_embedding_layer.h"

#include <cmath>

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t place_table = 0;

}  // namespace

Shape PositionEmbeddingLayer::infer(LayerShapes& shapes) const {
  const Shape& sequence = shapes.sequence();
  const std::int64_t width = sequence[2];
  shapes.parameter("table", {sequence[0], width},
                   {.bound = 1 / std::sqrt(static_cast<double>(width))});
  return sequence;
}

void PositionEmbeddingLayer::forward(LayerForward& step) const {
  step.emit(PositionEmbedding{.x = step.x(), .table = step.parameter(place_table), .y = step.y()});
}

void PositionEmbeddingLayer::backward(LayerBackward& step) const {
  step.emit(PositionEmbeddingGrad{.dy = step.dy(), .dtable = step.gradient(place_table)});
  step.pass(0, step.dy());
}

}  // namespace crossover
