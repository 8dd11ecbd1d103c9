// SPDX-License-Identifier: Apache-2.0
// A layer of GRU: as one of LSTM (lstm.cpp), but that a gate stands between the two products, which
// are therefore kept apart.
#include "crossover/operations/gru.h"

#include "../column_sums.h"
#include "../recurrence.h"
#include "../vector_math.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

template <class T>
struct GruForwardStep {
  const float *of_inputs, *of_states;  ///< sums of the products; of states nullptr: 0
  const float *b_ih, *b_hh;
  const T* before;  ///< h of the step before; nullptr: 0
  T* gates;
  float* recurrent;
  T* h;
};

template <class T>
void gru_forward(int threads, const RecurrentSizes& of, const GruForwardStep<T>& step) {
  for_each_cell(threads, of, [&](auto part, std::int64_t at, std::int64_t first) {
    const std::int64_t unit = at % of.hidden;
    const auto i = [&](std::int64_t gate) {
      const std::int64_t offset = gate * of.hidden;
      return load(part, step.of_inputs + first + offset) + load(part, step.b_ih + unit + offset);
    };
    const auto k = [&](std::int64_t gate) {
      const std::int64_t offset = gate * of.hidden;
      const Floats bias = load(part, step.b_hh + unit + offset);
      return step.of_states == nullptr ? bias : load(part, step.of_states + first + offset) + bias;
    };
    const Floats r = sigmoid(i(0) + k(0));
    const Floats z = sigmoid(i(1) + k(1));
    const Floats recurrent = k(2);
    const Floats n = hyperbolic_tangent(i(2) + r * recurrent);
    Floats h = (1.0F - z) * n;
    if (step.before != nullptr) {
      h += z * load(part, step.before + at);
    }
    store(part, r, step.gates + first);
    store(part, z, step.gates + first + of.hidden);
    store(part, n, step.gates + first + 2 * of.hidden);
    store(part, recurrent, step.recurrent + at);
    store(part, h, step.h + at);
  });
}

template <class T>
struct GruBackwardStep {
  const T* gates;
  const float* recurrent;
  const T *before, *dh;  ///< h of the step before; nullptr: 0
  T *di, *dk;
  float* carry;
  bool is_last;  ///< of the sequence: nothing is carried yet
};

template <class T>
void gru_backward(int threads, const RecurrentSizes& of, const GruBackwardStep<T>& step) {
  for_each_cell(threads, of, [&](auto part, std::int64_t at, std::int64_t first) {
    const Floats r = load(part, step.gates + first);
    const Floats z = load(part, step.gates + first + of.hidden);
    const Floats n = load(part, step.gates + first + 2 * of.hidden);
    const Floats before = step.before != nullptr ? load(part, step.before + at) : all(0);
    Floats of_h = load(part, step.dh + at);
    if (!step.is_last) {
      of_h += load(part, step.carry + at);
    }
    const Floats of_n = of_h * (1.0F - z) * (1.0F - n * n);
    const Floats of_z = of_h * (before - n) * (z * (1.0F - z));
    const Floats of_r = of_n * load(part, step.recurrent + at) * (r * (1.0F - r));
    for (T* to : {step.di, step.dk}) {
      store(part, of_r, to + first);
      store(part, of_z, to + first + of.hidden);
    }
    store(part, of_n, step.di + first + 2 * of.hidden);
    store(part, of_n * r, step.dk + first + 2 * of.hidden);
    store(part, of_h * z, step.carry + at);
  });
}

}  // namespace

void lower(const Gru& op, Lowering& to) {
  const RecurrentSizes of(to, op.x, op.w_hh);
  // The sums of the products stay in f32 until the biases are added to them.
  const Argument of_inputs =
      of.type == Type::f32 ? updates(op.gates) : to.reserve(of.gates(of.time, Type::f32));
  const Argument of_states = to.reserve(of.gates(1, Type::f32));
  add_product_of_inputs(to, of, op.x, op.w_ih, of_inputs);
  const int threads = to.threads_for_bytes(static_cast<double>(of.gates(1, Type::f32)));
  for (std::int64_t t = 0; t < of.time; ++t) {
    const Argument before = t > 0 ? reads(op.h).from(of.states(t - 1, of.type)) : Argument{};
    if (t > 0) {
      add_product_of_states(to, of, before, op.w_hh, of_states, false);
    }
    with_float(of.type, [&](auto zero) {
      using T = decltype(zero);
      to.add(OpCategory::elementwise, threads,
             {of_inputs.from(of.gates(t, Type::f32)), t > 0 ? of_states : Argument{},
              reads(op.b_ih), reads(op.b_hh), before, updates(op.gates).from(of.gates(t, of.type)),
              updates(op.recurrent).from(of.states(t, Type::f32)),
              updates(op.h).from(of.states(t, of.type))},
             [of](const Invocation& call) {
               gru_forward<T>(call.threads, of,
                              {.of_inputs = call.operand<const float>(0),
                               .of_states = call.operand<const float>(1),
                               .b_ih = call.operand<const float>(2),
                               .b_hh = call.operand<const float>(3),
                               .before = call.operand<const T>(4),
                               .gates = call.operand<T>(5),
                               .recurrent = call.operand<float>(6),
                               .h = call.operand<T>(7)});
             });
    });
  }
}

void lower(const GruGrad& op, Lowering& to) {
  const RecurrentSizes of(to, op.x, op.w_hh);
  const Argument carry = updates(op.carry);
  const int threads = to.threads_for_bytes(static_cast<double>(of.gates(1, Type::f32)));
  for (std::int64_t t = of.time - 1; t >= 0; --t) {
    const Argument dk_now = updates(op.dk).from(of.gates(t, of.type));
    with_float(of.type, [&](auto zero) {
      using T = decltype(zero);
      to.add(OpCategory::elementwise, threads,
             {reads(op.gates).from(of.gates(t, of.type)),
              reads(op.recurrent).from(of.states(t, Type::f32)),
              t > 0 ? reads(op.h).from(of.states(t - 1, of.type)) : Argument{},
              reads(op.dh).from(of.states(t, of.type)), updates(op.di).from(of.gates(t, of.type)),
              dk_now, carry},
             [of, is_last = t == of.time - 1](const Invocation& call) {
               gru_backward<T>(call.threads, of,
                               {.gates = call.operand<const T>(0),
                                .recurrent = call.operand<const float>(1),
                                .before = call.operand<const T>(2),
                                .dh = call.operand<const T>(3),
                                .di = call.operand<T>(4),
                                .dk = call.operand<T>(5),
                                .carry = call.operand<float>(6),
                                .is_last = is_last});
             });
    });
    if (t > 0) {
      add_product_to_states(to, of, dk_now, op.w_hh, carry, true);
    }
  }
  add_products_over_time(to, of, op, op.di, op.dk);
  add_column_sums(to, op.di, op.db_ih, false);
  add_column_sums(to, op.dk, op.db_hh, false);
}

}  // namespace crossover::cpu
