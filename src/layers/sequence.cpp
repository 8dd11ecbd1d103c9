// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "contexts.h"
#include "crossover/layers.h"

namespace crossover {

// ---- Embedding

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

// ---- Position embedding

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

// ---- Attention

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

// ---- LSTM

namespace {

constexpr std::size_t w_ih = 0;
constexpr std::size_t w_hh = 1;
constexpr std::size_t b_ih = 2;
constexpr std::size_t b_hh = 3;
// Of what is saved:
constexpr std::size_t gates = 0;
constexpr std::size_t c = 1;          // of an LSTM
constexpr std::size_t recurrent = 1;  // of a GRU

/// Declares the parameters, of `wide` rows.
Shape infer_recurrent(LayerShapes& shapes, std::int64_t hidden, std::int64_t wide) {
  const Shape& sequence = shapes.sequence();
  const std::int64_t in = sequence[2];
  const Start start{.bound = 1 / std::sqrt(static_cast<double>(hidden))};
  shapes.parameter("weight of inputs", {wide, in}, start);
  shapes.parameter("weight of recurrence", {wide, hidden}, start);
  shapes.parameter("bias of inputs", {wide}, start, ReadAs::f32);
  shapes.parameter("bias of recurrence", {wide}, start, ReadAs::f32);
  return {sequence[0], any_batch, hidden};
}

}  // namespace

// ---- LstmLayer

Shape LstmLayer::infer(LayerShapes& shapes) const {
  return infer_recurrent(shapes, hidden, gate_count * hidden);
}

void LstmLayer::forward(LayerForward& step) const {
  const Tensor h = step.tensor(step.y());
  const Shape of_gates{h.shape[0], h.shape[1], gate_count * hidden};
  const Id saved_gates = step.save("gates", of_gates, h.type);
  const Id saved_c = step.save("c", h.shape, Type::f32);
  step.emit(Lstm{.x = step.x(),
                 .w_ih = step.parameter(w_ih),
                 .w_hh = step.parameter(w_hh),
                 .b_ih = step.parameter(b_ih),
                 .b_hh = step.parameter(b_hh),
                 .h = step.y(),
                 .gates = saved_gates,
                 .c = saved_c});
}

void LstmLayer::backward(LayerBackward& step) const {
  const Tensor of_gates = step.tensor(step.saved(gates));
  const Shape carried{2, of_gates.shape[1], hidden};
  const Id dgates = step.scratch("dgates", of_gates.shape, of_gates.type);
  const Id carry = step.scratch("carry", carried, Type::f32);
  step.emit(LstmGrad{.x = step.x(),
                     .w_ih = step.parameter(w_ih),
                     .w_hh = step.parameter(w_hh),
                     .h = step.y(),
                     .gates = step.saved(gates),
                     .c = step.saved(c),
                     .dh = step.dy(),
                     .dgates = dgates,
                     .carry = carry,
                     .dx = step.dx(),
                     .dw_ih = step.gradient(w_ih),
                     .dw_hh = step.gradient(w_hh),
                     .db_ih = step.gradient(b_ih),
                     .db_hh = step.gradient(b_hh)});
}

// ---- GruLayer

Shape GruLayer::infer(LayerShapes& shapes) const {
  return infer_recurrent(shapes, hidden, gru_gate_count * hidden);
}

void GruLayer::forward(LayerForward& step) const {
  const Tensor h = step.tensor(step.y());
  const Shape of_gates{h.shape[0], h.shape[1], gru_gate_count * hidden};
  const Id saved_gates = step.save("gates", of_gates, h.type);
  const Id saved_recurrent = step.save("recurrent", h.shape, Type::f32);
  step.emit(Gru{.x = step.x(),
                .w_ih = step.parameter(w_ih),
                .w_hh = step.parameter(w_hh),
                .b_ih = step.parameter(b_ih),
                .b_hh = step.parameter(b_hh),
                .h = step.y(),
                .gates = saved_gates,
                .recurrent = saved_recurrent});
}

void GruLayer::backward(LayerBackward& step) const {
  const Tensor of_gates = step.tensor(step.saved(gates));
  const Id di = step.scratch("di", of_gates.shape, of_gates.type);
  const Id dk = step.scratch("dk", of_gates.shape, of_gates.type);
  const Id carry = step.scratch("carry", {of_gates.shape[1], hidden}, Type::f32);
  step.emit(GruGrad{.x = step.x(),
                    .w_ih = step.parameter(w_ih),
                    .w_hh = step.parameter(w_hh),
                    .h = step.y(),
                    .gates = step.saved(gates),
                    .recurrent = step.saved(recurrent),
                    .dh = step.dy(),
                    .di = di,
                    .dk = dk,
                    .carry = carry,
                    .dx = step.dx(),
                    .dw_ih = step.gradient(w_ih),
                    .dw_hh = step.gradient(w_hh),
                    .db_ih = step.gradient(b_ih),
                    .db_hh = step.gradient(b_hh)});
}

}  // namespace crossover
