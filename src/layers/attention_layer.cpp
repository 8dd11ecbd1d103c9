// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/attention_layer.h"

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t saved_log_sums = 0;

}  // namespace

Shape AttentionLayer::infer(LayerShapes& shapes) const {
  Shape sequence = shapes.sequence();
  constexpr std::int64_t parts = 3;  // queries, keys and values
  shapes.require(sequence[2] % (parts * heads) == 0,
                 "reads queries, keys and values of " + std::to_string(heads) +
                     " heads, which do not divide a width of " + std::to_string(sequence[2]) +
                     " by three times their number");
  sequence[2] /= parts;
  return sequence;
}

void AttentionLayer::forward(LayerForward& step) const {
  const Shape& sequence = step.tensor(step.y()).shape;
  const Shape places{sequence[1], heads, sequence[0]};
  const Id log_sums = step.save("log sums", places, Type::f32);
  step.emit(Attention{
      .qkv = step.x(), .y = step.y(), .log_sums = log_sums, .heads = heads, .causal = causal});
}

void AttentionLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(AttentionGrad{.qkv = step.x(),
                            .y = step.y(),
                            .log_sums = step.saved(saved_log_sums),
                            .dy = step.dy(),
                            .dqkv = dx,
                            .heads = heads,
                            .causal = causal});
  }
}

}  // namespace crossover
