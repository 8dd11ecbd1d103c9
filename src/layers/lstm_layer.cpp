// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/lstm_layer.h"

#include <cmath>

#include "contexts.h"

namespace crossover {
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
