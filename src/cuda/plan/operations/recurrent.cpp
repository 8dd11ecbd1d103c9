// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/recurrent.h"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "../step_planner.h"
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

// ---- A layer of recurrent units as products over slices of its sequences, and a kernel for the
// gates of each time step. What reads all time steps is one product: only the recurrence waits for
// the step before it.

namespace {

RecurrentSizes sizes_of(Id x, Id w_hh, const StepPlanner& step) {
  return {step.shape(x), step.shape(w_hh)};
}

/// What goes on to time step t from the one before; none at first.
template <class Op>
Operand state_before(const Op& op, const RecurrentSizes& of, std::int64_t t,
                     const StepPlanner& step) {
  const bool keeps_state = facts_of(op.cell).keeps_state;
  const Slices states(step.operand(keeps_state ? op.kept : op.h), of.states());
  return t > 0 ? states[t - 1] : Operand{};
}

}  // namespace

void plan_operation(const Recurrent& op, StepPlanner& step) {
  const RecurrentSizes of = sizes_of(op.x, op.w_hh, step);
  const Type type = step.type(op.x);
  const bool is_apart = facts_of(op.cell).is_apart;
  // In 16 bits the products are not rounded before their biases are added.
  const Operand all_sums = type == Type::f32
                               ? step.operand(op.gates)
                               : step.scratch(of.time * of.gates() * bytes(Type::f32));
  const Operand of_states = is_apart ? step.scratch(of.gates() * bytes(Type::f32)) : Operand{};
  const Slices sums(all_sums, of.gates());
  const Slices gates(step.operand(op.gates), of.gates());
  const Slices h(step.operand(op.h), of.states());
  const Slices kept(step.operand(op.kept), of.states());
  const ProductForm from_x{.m = of.wide,
                           .n = of.rows(),
                           .k = of.in,
                           .transpose_a = true,
                           .alignment_a = step.alignment(op.w_ih),
                           .alignment_b = step.alignment(op.x),
                           .alignment_d = step.alignment(all_sums),
                           .factors = type};
  step.emit(ProductLaunch{
      step.require(from_x), step.operand(op.w_ih), step.operand(op.x), all_sums, {}, {}});
  const ProductForm from_h{
      .m = of.wide,
      .n = of.batch,
      .k = of.hidden,
      .transpose_a = true,
      .accumulate = !is_apart,
      .alignment_a = step.alignment(op.w_hh),
      .alignment_b = h.alignment(step),
      .alignment_d = is_apart ? step.alignment(of_states) : sums.alignment(step),
      .factors = type};
  for (std::int64_t t = 0; t < of.time; ++t) {
    if (t > 0) {
      step.emit(ProductLaunch{step.require(from_h),
                              step.operand(op.w_hh),
                              h[t - 1],
                              is_apart ? of_states : sums[t],
                              {},
                              {}});
    }
    step.emit(GatesLaunch{.cell = op.cell,
                          .of_inputs = sums[t],
                          .of_states = t > 0 ? of_states : Operand{},
                          .b_ih = step.operand(op.b_ih),
                          .b_hh = step.operand(op.b_hh),
                          .before = state_before(op, of, t, step),
                          .gates = gates[t],
                          .kept = kept[t],
                          .h = h[t],
                          .batch = of.batch,
                          .hidden = of.hidden});
  }
}

namespace {

/// The gradients of the gates' sums, from the last time step to the first.
void plan_recurrence(const RecurrentGrad& op, const RecurrentSizes& of, StepPlanner& step) {
  const Slices gates(step.operand(op.gates), of.gates());
  const Slices di(step.operand(op.di), of.gates());
  const Slices dk(step.operand(op.of_states()), of.gates());
  const Slices dh(step.operand(op.dh), of.states());
  const Slices kept(step.operand(op.kept), of.states());
  const ProductForm to_h{.m = of.hidden,
                         .n = of.batch,
                         .k = of.wide,
                         .accumulate = !facts_of(op.cell).keeps_state,
                         .alignment_a = step.alignment(op.w_hh),
                         .alignment_b = dk.alignment(step),
                         .alignment_d = step.alignment(op.carry),
                         .factors = step.type(op.x)};
  for (std::int64_t t = of.time; t-- > 0;) {
    step.emit(GatesGradLaunch{.cell = op.cell,
                              .gates = gates[t],
                              .kept = kept[t],
                              .before = state_before(op, of, t, step),
                              .dh = dh[t],
                              .di = di[t],
                              .dk = op.is_apart() ? dk[t] : Operand{},
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

/// dw = factorT times the gradients of sums, over so many rows of both; column-major, so
/// transposed.
ProductForm weights_form(Id factor, std::int64_t rows, std::int64_t alignment_sums, Id dw,
                         const RecurrentGrad& op, const StepPlanner& step) {
  return {.m = step.shape(dw)[1],
          .n = step.shape(dw)[0],
          .k = rows,
          .transpose_b = true,
          .alignment_a = step.alignment(factor),
          .alignment_b = alignment_sums,
          .alignment_d = step.alignment(dw),
          .factors = step.type(op.x)};
}

/// Of what was multiplied by them in all time steps.
void plan_parameters(const RecurrentGrad& op, const RecurrentSizes& of, StepPlanner& step) {
  ProductForm to_w = weights_form(op.x, of.rows(), step.alignment(op.di), op.dw_ih, op, step);
  to_w.epilogue = Epilogue::b_sum;
  if (step.stays(op.db_ih) && step.supports(to_w)) {
    step.emit_product(to_w, op.x, op.di, op.dw_ih, step.operand(op.db_ih));
  } else {
    to_w.epilogue = Epilogue::none;
    step.emit_product(step.require(to_w), op.x, op.di, op.dw_ih);
    step.emit_column_sums(step.operand(op.di), step.operand(op.db_ih), of.rows(), of.wide);
  }
  if (op.is_apart()) {
    step.emit_column_sums(step.operand(op.dk), step.operand(op.db_hh), of.rows(), of.wide);
  } else {
    step.emit(ReshapeLaunch{step.operand(op.db_ih), step.operand(op.db_hh), of.wide, {}, {}});
  }
  if (of.time == 1) {
    step.emit(ZeroLaunch{step.operand(op.dw_hh), step.count(op.dw_hh)});
    return;
  }
  const Slices sums(step.operand(op.of_states()), of.gates());
  const ProductForm to_w_hh =
      weights_form(op.h, of.rows() - of.batch, sums.alignment(step), op.dw_hh, op, step);
  step.emit(ProductLaunch{
      step.require(to_w_hh), step.operand(op.h), sums[1], step.operand(op.dw_hh), {}, {}});
}

}  // namespace

void plan_operation(const RecurrentGrad& op, StepPlanner& step) {
  const RecurrentSizes of = sizes_of(op.x, op.w_hh, step);
  plan_recurrence(op, of, step);
  const auto dx = [&] {
    if (op.dx != none) {
      const ProductForm to_x{.m = of.in,
                             .n = of.rows(),
                             .k = of.wide,
                             .alignment_a = step.alignment(op.w_ih),
                             .alignment_b = step.alignment(op.di),
                             .alignment_d = step.alignment(op.dx),
                             .factors = step.type(op.x),
                             .result = step.type(op.dx)};
      step.emit_product(step.require(to_x), op.w_ih, op.di, op.dx);
    }
  };
  step.emit_side_by_side(dx, [&] { plan_parameters(op, of, step); });
}

}  // namespace crossover::cuda
