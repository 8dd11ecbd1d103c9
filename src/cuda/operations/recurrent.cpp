// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/recurrent.h"

#include <algorithm>
#include <cstdint>

#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

// ---- A sequence, seen by its time steps: what recurrent layers read and write one after another.

class Slices {
 public:
  /// Of so many elements each.
  Slices(const Operand& whole, std::int64_t elements)
      : whole_(whole), bytes_(elements * bytes(whole.type)) {}

  [[nodiscard]] Operand operator[](std::int64_t t) const { return part_of(whole_, t * bytes_); }
  /// Of every one of them.
  [[nodiscard]] std::int64_t alignment(const StepPlanner& step) const {
    return std::min(step.alignment(whole_), bytes_ & -bytes_);
  }

 private:
  Operand whole_;
  std::int64_t bytes_;
};

// ---- An LSTM as products over slices of its sequences, and a kernel for the gates of each time
// step. What reads all time steps is one product: only the recurrence waits for the step before it.

namespace {

struct Sizes {
  std::int64_t time, batch, in, hidden, wide;
};

Sizes sizes_of(Id x, Id w_hh, const StepPlanner& step) {
  const Shape& sequence = step.shape(x);
  const std::int64_t hidden = step.shape(w_hh)[1];
  return {sequence[0], sequence[1], sequence[2], hidden, gate_count * hidden};
}

}  // namespace

void plan_operation(const Lstm& op, StepPlanner& step) {
  const Sizes of = sizes_of(op.x, op.w_hh, step);
  const Type type = step.type(op.x);
  // In 16 bits the products are not rounded before their biases are added.
  const Operand all_sums = type == Type::f32
                               ? step.operand(op.gates)
                               : step.scratch(of.time * of.batch * of.wide * bytes(Type::f32));
  const Slices sums(all_sums, of.batch * of.wide);
  const Slices gates(step.operand(op.gates), of.batch * of.wide);
  const Slices h(step.operand(op.h), of.batch * of.hidden);
  const Slices c(step.operand(op.c), of.batch * of.hidden);
  const ProductForm from_x{.m = of.wide,
                           .n = of.time * of.batch,
                           .k = of.in,
                           .transpose_a = true,
                           .alignment_a = step.alignment(op.w_ih),
                           .alignment_b = step.alignment(op.x),
                           .alignment_d = step.alignment(all_sums),
                           .factors = type};
  step.emit(ProductLaunch{
      step.require(from_x), step.operand(op.w_ih), step.operand(op.x), all_sums, {}, {}});
  const ProductForm from_h{.m = of.wide,
                           .n = of.batch,
                           .k = of.hidden,
                           .transpose_a = true,
                           .accumulate = true,
                           .alignment_a = step.alignment(op.w_hh),
                           .alignment_b = h.alignment(step),
                           .alignment_d = sums.alignment(step),
                           .factors = type};
  for (std::int64_t t = 0; t < of.time; ++t) {
    if (t > 0) {
      step.emit(
          ProductLaunch{step.require(from_h), step.operand(op.w_hh), h[t - 1], sums[t], {}, {}});
    }
    step.emit(LstmGatesLaunch{.sums = sums[t],
                              .b_ih = step.operand(op.b_ih),
                              .b_hh = step.operand(op.b_hh),
                              .c_before = t > 0 ? c[t - 1] : Operand{},
                              .gates = gates[t],
                              .c = c[t],
                              .h = h[t],
                              .batch = of.batch,
                              .hidden = of.hidden});
  }
}

namespace {

/// dgates, from the last time step to the first.
void plan_recurrence(const LstmGrad& op, const Sizes& of, StepPlanner& step) {
  const Slices gates(step.operand(op.gates), of.batch * of.wide);
  const Slices dgates(step.operand(op.dgates), of.batch * of.wide);
  const Slices dh(step.operand(op.dh), of.batch * of.hidden);
  const Slices c(step.operand(op.c), of.batch * of.hidden);
  const Slices carry(step.operand(op.carry), of.batch * of.hidden);
  const ProductForm to_h{.m = of.hidden,
                         .n = of.batch,
                         .k = of.wide,
                         .alignment_a = step.alignment(op.w_hh),
                         .alignment_b = dgates.alignment(step),
                         .alignment_d = step.alignment(op.carry),
                         .factors = step.type(op.x)};
  for (std::int64_t t = of.time; t-- > 0;) {
    step.emit(LstmGatesGradLaunch{.gates = gates[t],
                                  .c_before = t > 0 ? c[t - 1] : Operand{},
                                  .c = c[t],
                                  .dh = dh[t],
                                  .dgates = dgates[t],
                                  .carry_h = carry[0],
                                  .carry_c = carry[1],
                                  .batch = of.batch,
                                  .hidden = of.hidden,
                                  .is_last = t == of.time - 1});
    if (t > 0) {
      step.emit(
          ProductLaunch{step.require(to_h), step.operand(op.w_hh), dgates[t], carry[0], {}, {}});
    }
  }
}

/// dw = factorT dgates over all rows of both; column-major, so transposed.
ProductForm weights_form(std::int64_t width, std::int64_t rows, std::int64_t alignment_factor,
                         std::int64_t alignment_dgates, Id dw, const LstmGrad& op,
                         const StepPlanner& step) {
  return {.m = width,
          .n = step.shape(dw)[0],
          .k = rows,
          .transpose_b = true,
          .alignment_a = alignment_factor,
          .alignment_b = alignment_dgates,
          .alignment_d = step.alignment(dw),
          .factors = step.type(op.x)};
}

/// Of what was multiplied by them in all time steps.
void plan_parameters(const LstmGrad& op, const Sizes& of, StepPlanner& step) {
  const std::int64_t rows = of.time * of.batch;
  ProductForm to_w = weights_form(of.in, rows, step.alignment(op.x), step.alignment(op.dgates),
                                  op.dw_ih, op, step);
  to_w.epilogue = Epilogue::b_sum;
  if (step.stays(op.db_ih) && step.supports(to_w)) {
    step.emit_product(to_w, op.x, op.dgates, op.dw_ih, step.operand(op.db_ih));
  } else {
    to_w.epilogue = Epilogue::none;
    step.emit_product(step.require(to_w), op.x, op.dgates, op.dw_ih);
    step.emit_column_sums(step.operand(op.dgates), step.operand(op.db_ih), rows, of.wide);
  }
  step.emit(ReshapeLaunch{step.operand(op.db_ih), step.operand(op.db_hh), of.wide, {}, {}});
  if (of.time == 1) {
    step.emit(ZeroLaunch{step.operand(op.dw_hh), step.count(op.dw_hh)});
    return;
  }
  const Slices dgates(step.operand(op.dgates), of.batch * of.wide);
  const ProductForm to_w_hh = weights_form(of.hidden, rows - of.batch, step.alignment(op.h),
                                           dgates.alignment(step), op.dw_hh, op, step);
  step.emit(ProductLaunch{
      step.require(to_w_hh), step.operand(op.h), dgates[1], step.operand(op.dw_hh), {}, {}});
}

}  // namespace

void plan_operation(const LstmGrad& op, StepPlanner& step) {
  const Sizes of = sizes_of(op.x, op.w_hh, step);
  plan_recurrence(op, of, step);
  const auto dx = [&] {
    if (op.dx != none) {
      const ProductForm to_x{.m = of.in,
                             .n = of.time * of.batch,
                             .k = of.wide,
                             .alignment_a = step.alignment(op.w_ih),
                             .alignment_b = step.alignment(op.dgates),
                             .alignment_d = step.alignment(op.dx),
                             .factors = step.type(op.x),
                             .result = step.type(op.dx)};
      step.emit_product(step.require(to_x), op.w_ih, op.dgates, op.dx);
    }
  };
  step.emit_side_by_side(dx, [&] { plan_parameters(op, of, step); });
}

// ---- A GRU as products over slices of its sequences, and a kernel for the gates of each time
// step, as an LSTM is; the sums of both products stay apart.

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
