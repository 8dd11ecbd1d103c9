// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "contexts.h"
#include "crossover/layers.h"

namespace crossover {

Shape EmbeddingLayer::infer(LayerShapes& shapes) const {
  const Shape& tokens = shapes.input();
  shapes.require(tokens.size() == 2 && tokens.front() == any_batch, "reads sequences of tokens");
  shapes.parameter("table", {vocabulary, width},
                   {.bound = scaled_start ? 1 / std::sqrt(static_cast<double>(width)) : 1});
  return {tokens[1], any_batch, width};
}

void EmbeddingLayer::forward(LayerForward& step) const {
  step.emit(Embedding{.tokens = step.x(), .table = step.parameter(), .y = step.y()});
}

void EmbeddingLayer::backward(LayerBackward& step) const {
  step.emit(EmbeddingGrad{.tokens = step.x(), .dy = step.dy(), .dtable = step.gradient()});
}

Shape PositionEmbeddingLayer::infer(LayerShapes& shapes) const {
  const Shape& sequence = shapes.sequence();
  const std::int64_t width = sequence[2];
  shapes.parameter("table", {sequence[0], width},
                   {.bound = 1 / std::sqrt(static_cast<double>(width))});
  return sequence;
}

void PositionEmbeddingLayer::forward(LayerForward& step) const {
  step.emit(PositionEmbedding{.x = step.x(), .table = step.parameter(), .y = step.y()});
}

void PositionEmbeddingLayer::backward(LayerBackward& step) const {
  if (step.is_trained()) {
    step.emit(PositionEmbeddingGrad{.dy = step.dy(), .dtable = step.gradient()});
  }
  step.pass(0, step.dy());
}

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
  if (const Id dx = step.dx(); dx != none) {
    step.emit(AttentionGrad{.qkv = step.x(),
                            .y = step.y(),
                            .log_sums = step.saved(),
                            .dy = step.dy(),
                            .dqkv = dx,
                            .heads = heads,
                            .causal = causal});
  }
}

namespace {

constexpr std::size_t w_ih = 0;
constexpr std::size_t w_hh = 1;
constexpr std::size_t b_ih = 2;
constexpr std::size_t b_hh = 3;
// Of what is saved:
constexpr std::size_t gates = 0;
constexpr std::size_t kept_tensor = 1;

}  // namespace

template <class Unit>
Shape RecurrentLayer<Unit>::infer(LayerShapes& shapes) const {
  const Shape& sequence = shapes.sequence();
  const std::int64_t wide = Unit::gates * hidden;
  const Start start{.bound = 1 / std::sqrt(static_cast<double>(hidden))};
  const std::int64_t in = sequence[2];
  shapes.parameter("weight of inputs", {wide, in}, start);
  shapes.parameter("weight of recurrence", {wide, hidden}, start);
  shapes.parameter("bias of inputs", {wide}, start, ReadAs::f32);
  shapes.parameter("bias of recurrence", {wide}, start, ReadAs::f32);
  return {sequence[0], any_batch, hidden};
}

template <class Unit>
void RecurrentLayer<Unit>::forward(LayerForward& step) const {
  const Tensor h = step.tensor(step.y());
  const Shape of_gates{h.shape[0], h.shape[1], Unit::gates * hidden};
  const Id saved_gates = step.save("gates", of_gates, h.type);
  const Id saved = step.save(Unit::kept, h.shape, Type::f32);
  step.emit(Recurrent{.cell = Unit{},
                      .x = step.x(),
                      .w_ih = step.parameter(w_ih),
                      .w_hh = step.parameter(w_hh),
                      .b_ih = step.parameter(b_ih),
                      .b_hh = step.parameter(b_hh),
                      .h = step.y(),
                      .gates = saved_gates,
                      .kept = saved});
}

template <class Unit>
void RecurrentLayer<Unit>::backward(LayerBackward& step) const {
  const Tensor of_gates = step.tensor(step.saved(gates));
  Shape carried{of_gates.shape[1], hidden};
  if (Unit::keeps_state) {
    carried.insert(carried.begin(), 2);
  }
  const Id di = step.scratch(Unit::di_name, of_gates.shape, of_gates.type);
  const Id dk = Unit::is_apart ? step.scratch("dk", of_gates.shape, of_gates.type) : none;
  const Id carry = step.scratch("carry", carried, Type::f32);
  step.emit(RecurrentGrad{.cell = Unit{},
                          .x = step.x(),
                          .w_ih = step.parameter(w_ih),
                          .w_hh = step.parameter(w_hh),
                          .h = step.y(),
                          .gates = step.saved(gates),
                          .kept = step.saved(kept_tensor),
                          .dh = step.dy(),
                          .di = di,
                          .dk = dk,
                          .carry = carry,
                          .dx = step.dx(),
                          .dw_ih = step.gradient_or_scratch(w_ih),
                          .dw_hh = step.gradient_or_scratch(w_hh),
                          .db_ih = step.gradient_or_scratch(b_ih),
                          .db_hh = step.gradient_or_scratch(b_hh)});
}

template struct RecurrentLayer<LstmCell>;
template struct RecurrentLayer<GruCell>;

}  // namespace crossover
