// SPDX-License-Identifier: Apache-2.0
// A GRU as products over slices of its sequences, and a kernel for the gates of each time step, as
// an LSTM is (sequence.cpp); the sums of both products stay apart.
#include "crossover/operations/gru.h"

#include "../planning/step_planner.h"
#include "operations.h"
#include "sequence_slices.h"

namespace crossover::cuda {
namespace {

struct GruSizes {
  GruSizes(Id x, Id w_hh, const StepPlanner& step)
      : time(step.shape(x)[0]),
        batch(step.shape(x)[1]),
        in(step.shape(x)[2]),
        hidden(step.shape(w_hh)[1]),
        wide(step.shape(w_hh)[0]),
        type(step.type(x)) {}

  std::int64_t time, batch, in, hidden, wide;
  Type type;
};

}  // namespace

void plan_operation(const Gru& op, StepPlanner& step) {
  const GruSizes of(op.x, op.w_hh, step);
  // In 16 bits the products are not rounded before their biases are added.
  const Operand all_inputs = of.type == Type::f32
                                 ? step.operand(op.gates)
                                 : step.scratch(of.time * of.batch * of.wide * bytes(Type::f32));
  const Operand of_states = step.scratch(of.batch * of.wide * bytes(Type::f32));
  const Slices of_inputs(all_inputs, of.batch * of.wide);
  const Slices gates(step.operand(op.gates), of.batch * of.wide);
  const Slices h(step.operand(op.h), of.batch * of.hidden);
  const Slices recurrent(step.operand(op.recurrent), of.batch * of.hidden);
  const ProductForm from_x{.m = of.wide,
                           .n = of.time * of.batch,
                           .k = of.in,
                           .transpose_a = true,
                           .alignment_a = step.alignment(op.w_ih),
                           .alignment_b = step.alignment(op.x),
                           .alignment_d = step.alignment(all_inputs),
                           .factors = of.type};
  step.emit(ProductLaunch{
      step.require(from_x), step.operand(op.w_ih), step.operand(op.x), all_inputs, {}, {}});
  const ProductForm from_h{.m = of.wide,
                           .n = of.batch,
                           .k = of.hidden,
                           .transpose_a = true,
                           .alignment_a = step.alignment(op.w_hh),
                           .alignment_b = h.alignment(step),
                           .alignment_d = step.alignment(of_states),
                           .factors = of.type};
  for (std::int64_t t = 0; t < of.time; ++t) {
    if (t > 0) {
      step.emit(
          ProductLaunch{step.require(from_h), step.operand(op.w_hh), h[t - 1], of_states, {}, {}});
    }
    step.emit(GruGatesLaunch{.of_inputs = of_inputs[t],
                             .of_states = t > 0 ? of_states : Operand{},
                             .b_ih = step.operand(op.b_ih),
                             .b_hh = step.operand(op.b_hh),
                             .h_before = t > 0 ? h[t - 1] : Operand{},
                             .gates = gates[t],
                             .recurrent = recurrent[t],
                             .h = h[t],
                             .batch = of.batch,
                             .hidden = of.hidden});
  }
}

namespace {

/// di and dk, from the last time step to the first.
void plan_recurrence(const GruGrad& op, const GruSizes& of, StepPlanner& step) {
  const Slices gates(step.operand(op.gates), of.batch * of.wide);
  const Slices di(step.operand(op.di), of.batch * of.wide);
  const Slices dk(step.operand(op.dk), of.batch * of.wide);
  const Slices h(step.operand(op.h), of.batch * of.hidden);
  const Slices dh(step.operand(op.dh), of.batch * of.hidden);
  const Slices recurrent(step.operand(op.recurrent), of.batch * of.hidden);
  const ProductForm to_h{.m = of.hidden,
                         .n = of.batch,
                         .k = of.wide,
                         .accumulate = true,
                         .alignment_a = step.alignment(op.w_hh),
                         .alignment_b = dk.alignment(step),
                         .alignment_d = step.alignment(op.carry),
                         .factors = of.type};
  for (std::int64_t t = of.time; t-- > 0;) {
    step.emit(GruGatesGradLaunch{.gates = gates[t],
                                 .recurrent = recurrent[t],
                                 .h_before = t > 0 ? h[t - 1] : Operand{},
                                 .dh = dh[t],
                                 .di = di[t],
                                 .dk = dk[t],
                                 .carry = step.operand(op.carry),
                                 .batch = of.batch,
                                 .hidden = of.hidden,
                                 .is_last = t == of.time - 1});
    if (t > 0) {
      step.emit(ProductLaunch{
          step.require(to_h), step.operand(op.w_hh), dk[t], step.operand(op.carry), {}, {}});
    }
  }
}

/// Of a weight and its bias: what was multiplied, `factor`, lies before the gradients `of_sums` of
/// `rows` rows.
void plan_weight(const GruGrad& op, Id factor, const Operand& of_sums, std::int64_t alignment,
                 std::int64_t rows, Id dw, StepPlanner& step) {
  if (rows == 0) {
    step.emit(ZeroLaunch{step.operand(dw), step.count(dw)});
    return;
  }
  const ProductForm form{.m = step.shape(dw)[1],
                         .n = step.shape(dw)[0],
                         .k = rows,
                         .transpose_b = true,
                         .alignment_a = step.alignment(factor),
                         .alignment_b = alignment,
                         .alignment_d = step.alignment(dw),
                         .factors = step.type(op.x)};
  step.emit(
      ProductLaunch{step.require(form), step.operand(factor), of_sums, step.operand(dw), {}, {}});
}

}  // namespace

void plan_operation(const GruGrad& op, StepPlanner& step) {
  const GruSizes of(op.x, op.w_hh, step);
  plan_recurrence(op, of, step);
  const std::int64_t rows = of.time * of.batch;
  const auto dx = [&] {
    if (op.dx != none) {
      const ProductForm to_x{.m = of.in,
                             .n = rows,
                             .k = of.wide,
                             .alignment_a = step.alignment(op.w_ih),
                             .alignment_b = step.alignment(op.di),
                             .alignment_d = step.alignment(op.dx),
                             .factors = of.type,
                             .result = step.type(op.dx)};
      step.emit_product(step.require(to_x), op.w_ih, op.di, op.dx);
    }
  };
  step.emit_side_by_side(dx, [&] {
    plan_weight(op, op.x, step.operand(op.di), step.alignment(op.di), rows, op.dw_ih, step);
    const Slices dk(step.operand(op.dk), of.batch * of.wide);
    plan_weight(op, op.h, dk[of.time > 1 ? 1 : 0], dk.alignment(step), rows - of.batch, op.dw_hh,
                step);
    step.emit_column_sums(step.operand(op.di), step.operand(op.db_ih), rows, of.wide);
    step.emit_column_sums(step.operand(op.dk), step.operand(op.db_hh), rows, of.wide);
  });
}

}  // namespace crossover::cuda
