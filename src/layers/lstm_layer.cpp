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
constexpr std::size_t c = 1;

}  // namespace

Shape LstmLayer::infer(LayerShapes& shapes) const {
  const Shape& sequence = shapes.sequence();
  const std::int64_t in = sequence[2];
  const std::int64_t wide = gate_count * hidden;
  const Start start{.bound = 1 / std::sqrt(static_cast<double>(hidden))};
  shapes.parameter("weight of inputs", {wide, in}, start);
  shapes.parameter("weight of recurrence", {wide, hidden}, start);
  shapes.parameter("bias of inputs", {wide}, start, ReadAs::f32);
  shapes.parameter("bias of recurrence", {wide}, start, ReadAs::f32);
  return {sequence[0], any_batch, hidden};
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

}  // namespace crossover
