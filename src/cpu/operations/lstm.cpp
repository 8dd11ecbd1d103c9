// SPDX-License-Identifier: Apache-2.0
// A layer of LSTM: products over all time steps at once where the recurrence allows it, one for
// each step where not, and a loop over the cells of each step.
#include <algorithm>

#include "../column_sums.h"
#include "../recurrence.h"
#include "../vector_math.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

// ---- forward

template <class T>
struct ForwardStep {
  const float* sums;  ///< of the products
  const float *b_ih, *b_hh;
  const float* before;  ///< c of the step before; nullptr: 0
  T* gates;
  float* c;
  T* h;
};

template <class T>
void forward_step(int threads, const RecurrentSizes& of, const ForwardStep<T>& step) {
  for_each_cell(threads, of, [&](auto part, std::int64_t at, std::int64_t first) {
    const std::int64_t unit = at % of.hidden;
    const auto sum = [&](std::int64_t gate) {
      const std::int64_t offset = gate * of.hidden;
      return load(part, step.sums + first + offset) + load(part, step.b_ih + unit + offset) +
             load(part, step.b_hh + unit + offset);
    };
    const Floats i = sigmoid(sum(0));
    const Floats f = sigmoid(sum(1));
    const Floats g = hyperbolic_tangent(sum(2));
    const Floats o = sigmoid(sum(3));
    Floats c = i * g;
    if (step.before != nullptr) {
      c += f * load(part, step.before + at);
    }
    store(part, i, step.gates + first);
    store(part, f, step.gates + first + of.hidden);
    store(part, g, step.gates + first + 2 * of.hidden);
    store(part, o, step.gates + first + 3 * of.hidden);
    store(part, c, step.c + at);
    store(part, o * hyperbolic_tangent(c), step.h + at);
  });
}

// ---- backward

template <class T>
struct BackwardStep {
  const T* gates;
  const float *c, *before;  ///< of this step and of the one before; nullptr: 0
  const T* dh;
  T* dgates;
  float *to_h, *to_c;  ///< the gradients that come from the next step
  bool is_last;        ///< of the sequence: there is none, and both are set to zero
};

template <class T>
void backward_step(int threads, const RecurrentSizes& of, const BackwardStep<T>& step) {
  for_each_cell(threads, of, [&](auto part, std::int64_t at, std::int64_t first) {
    const Floats i = load(part, step.gates + first);
    const Floats f = load(part, step.gates + first + of.hidden);
    const Floats g = load(part, step.gates + first + 2 * of.hidden);
    const Floats o = load(part, step.gates + first + 3 * of.hidden);
    const Floats bent = hyperbolic_tangent(load(part, step.c + at));
    const Floats before = step.before != nullptr ? load(part, step.before + at) : all(0);
    Floats of_h = load(part, step.dh + at);
    Floats of_c{};
    if (step.is_last) {
      store(part, all(0), step.to_h + at);
    } else {
      of_h += load(part, step.to_h + at);
      of_c = load(part, step.to_c + at);
    }
    of_c += of_h * o * (1.0F - bent * bent);
    store(part, of_c * g * (i * (1.0F - i)), step.dgates + first);
    store(part, of_c * before * (f * (1.0F - f)), step.dgates + first + of.hidden);
    store(part, of_c * i * (1.0F - g * g), step.dgates + first + 2 * of.hidden);
    store(part, of_h * bent * (o * (1.0F - o)), step.dgates + first + 3 * of.hidden);
    store(part, of_c * f, step.to_c + at);
  });
}

void add_copy(Lowering& to, Id from, Id into) {
  to.add(OpCategory::elementwise, 1, {reads(from), writes(into)},
         [n = to.count(from)](const Invocation& call) {
           std::copy_n(call.operand<const float>(0), n, call.operand<float>(1));
         });
}

}  // namespace

void lower(const Lstm& op, Lowering& to) {
  const RecurrentSizes of(to, op.x, op.w_hh);
  // The sums of both products stay in f32 until the bias is added to them.
  const Argument sums =
      of.type == Type::f32 ? updates(op.gates) : to.reserve(of.gates(of.time, Type::f32));
  add_product_of_inputs(to, of, op.x, op.w_ih, sums);
  const int threads = to.threads_for_bytes(static_cast<double>(of.gates(1, Type::f32)));
  for (std::int64_t t = 0; t < of.time; ++t) {
    const Argument sums_now = sums.from(of.gates(t, Type::f32));
    const Argument h_now = updates(op.h).from(of.states(t, of.type));
    const Argument c_now = updates(op.c).from(of.states(t, Type::f32));
    if (t > 0) {
      add_product_of_states(to, of, reads(op.h).from(of.states(t - 1, of.type)), op.w_hh, sums_now,
                            true);
    }
    with_float(of.type, [&](auto zero) {
      using T = decltype(zero);
      to.add(OpCategory::elementwise, threads,
             {sums_now, reads(op.b_ih), reads(op.b_hh),
              t > 0 ? reads(op.c).from(of.states(t - 1, Type::f32)) : Argument{},
              updates(op.gates).from(of.gates(t, of.type)), c_now, h_now},
             [of](const Invocation& call) {
               forward_step<T>(call.threads, of,
                               {.sums = call.operand<const float>(0),
                                .b_ih = call.operand<const float>(1),
                                .b_hh = call.operand<const float>(2),
                                .before = call.operand<const float>(3),
                                .gates = call.operand<T>(4),
                                .c = call.operand<float>(5),
                                .h = call.operand<T>(6)});
             });
    });
  }
}

void lower(const LstmGrad& op, Lowering& to) {
  const RecurrentSizes of(to, op.x, op.w_hh);
  const Argument to_h = updates(op.carry);
  const Argument to_c = to_h.from(of.states(1, Type::f32));
  const int threads = to.threads_for_bytes(static_cast<double>(of.gates(1, Type::f32)));
  for (std::int64_t t = of.time - 1; t >= 0; --t) {
    const Argument dgates_now = updates(op.dgates).from(of.gates(t, of.type));
    with_float(of.type, [&](auto zero) {
      using T = decltype(zero);
      to.add(OpCategory::elementwise, threads,
             {reads(op.gates).from(of.gates(t, of.type)), reads(op.c).from(of.states(t, Type::f32)),
              t > 0 ? reads(op.c).from(of.states(t - 1, Type::f32)) : Argument{},
              reads(op.dh).from(of.states(t, of.type)), dgates_now, to_h, to_c},
             [of, is_last = t == of.time - 1](const Invocation& call) {
               backward_step<T>(call.threads, of,
                                {.gates = call.operand<const T>(0),
                                 .c = call.operand<const float>(1),
                                 .before = call.operand<const float>(2),
                                 .dh = call.operand<const T>(3),
                                 .dgates = call.operand<T>(4),
                                 .to_h = call.operand<float>(5),
                                 .to_c = call.operand<float>(6),
                                 .is_last = is_last});
             });
    });
    if (t > 0) {
      add_product_to_states(to, of, dgates_now, op.w_hh, to_h, false);
    }
  }
  add_products_over_time(to, of, op, op.dgates, op.dgates);
  add_column_sums(to, op.dgates, op.db_ih, false);
  add_copy(to, op.db_ih, op.db_hh);
}

}  // namespace crossover::cpu
