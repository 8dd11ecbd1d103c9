// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/embedding_layer.h"

#include <cmath>

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t table = 0;

}  // namespace

Shape EmbeddingLayer::infer(LayerShapes& shapes) const {
  const Shape& tokens = shapes.input();
  shapes.require(tokens.size() == 2 && tokens.front() == any_batch, "reads sequences of tokens");
  shapes.parameter("table", {vocabulary, width},
                   {.bound = scaled_start ? 1 / std::sqrt(static_cast<double>(width)) : 1});
  return {tokens[1], any_batch, width};
}

void EmbeddingLayer::forward(LayerForward& step) const {
  step.emit(Embedding{.tokens = step.x(), .table = step.parameter(table), .y = step.y()});
}

void EmbeddingLayer::backward(LayerBackward& step) const {
  step.emit(EmbeddingGrad{.tokens = step.x(), .dy = step.dy(), .dtable = step.gradient(table)});
}

}  // namespace crossover
