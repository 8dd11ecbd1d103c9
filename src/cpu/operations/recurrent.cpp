// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/recurrent.h"

#include <algorithm>
#include <cstdint>

#include "../column_sums.h"
#include "../primitives.h"
#include "../threads.h"
#include "../vector.h"
#include "../vector_math.h"
#include "operations.h"

namespace crossover::cpu {

// ---- What layers of recurrent units share: sizes, the loop over the cells of a time step, and the
// products of all time steps at once.

struct RecurrentSizes {
  RecurrentSizes(const Lowering& to, Id x, Id w_hh)
      : time(to[x].shape[0]),
        batch(to[x].shape[1]),
        in(to[x].shape[2]),
        hidden(to[w_hh].shape[1]),
        wide(to[w_hh].shape[0]),
        type(to[x].type) {}

  /// Bytes of so many time steps of [batch, hidden], or of [batch, wide].
  [[nodiscard]] std::int64_t states(std::int64_t steps, Type of) const {
    return steps * batch * hidden * bytes(of);
  }
  [[nodiscard]] std::int64_t gates(std::int64_t steps, Type of) const {
    return steps * batch * wide * bytes(of);
  }

  std::int64_t time, batch, in, hidden;
  std::int64_t wide;  ///< of all gates together
  Type type;
};

/// work(part, element of a state, element of its first gate) for the cells of a time step.
template <class Work>
void for_each_cell(int threads, const RecurrentSizes& of, const Work& work) {
  split(
      threads, of.batch,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          for_each_vector(of.hidden, [&](auto part, std::int64_t unit) {
            work(part, row * of.hidden + unit, row * of.wide + unit);
          });
        }
      },
      1);
}

/// sums [time batch, wide] = x w_ihT.
inline void add_product_of_inputs(Lowering& to, const RecurrentSizes& of, Id x, Id w_ih,
                                  const Argument& sums) {
  add_product(to,
              {.m = of.time * of.batch,
               .n = of.wide,
               .k = of.in,
               .a_strides = {of.in, 1},
               .b_strides = {1, of.in},
               .operand_type = of.type},
              {.a = {x}, .b = {w_ih}, .bias = {}, .c = sums});
}

/// sums [batch, wide] (+)= h w_hhT of one time step.
inline void add_product_of_states(Lowering& to, const RecurrentSizes& of, const Argument& h,
                                  Id w_hh, const Argument& sums, bool accumulate) {
  add_product(to,
              {.m = of.batch,
               .n = of.wide,
               .k = of.hidden,
               .a_strides = {of.hidden, 1},
               .b_strides = {1, of.hidden},
               .accumulate = accumulate,
               .operand_type = of.type},
              {.a = h, .b = {w_hh}, .bias = {}, .c = sums});
}

/// carry [batch, hidden] (+)= the gradients of one time step's products by w_hh.
inline void add_product_to_states(Lowering& to, const RecurrentSizes& of, const Argument& dsums,
                                  Id w_hh, const Argument& carry, bool accumulate) {
  add_product(to,
              {.m = of.batch,
               .n = of.hidden,
               .k = of.wide,
               .a_strides = {of.wide, 1},
               .b_strides = {of.hidden, 1},
               .accumulate = accumulate,
               .operand_type = of.type},
              {.a = dsums, .b = {w_hh}, .bias = {}, .c = carry});
}

/// dx, dw_ih and dw_hh of `op` from the gradients of both products of all time steps.
template <class Op>
void add_products_over_time(Lowering& to, const RecurrentSizes& of, const Op& op, Id of_inputs,
                            Id of_states) {
  const std::int64_t rows = of.time * of.batch;
  if (op.dx != none) {
    add_product(to,
                {.m = rows,
                 .n = of.in,
                 .k = of.wide,
                 .a_strides = {of.wide, 1},
                 .b_strides = {of.in, 1},
                 .operand_type = of.type,
                 .result_type = of.type},
                {.a = {of_inputs}, .b = {op.w_ih}, .bias = {}, .c = {op.dx}});
  }
  add_product(to,
              {.m = of.wide,
               .n = of.in,
               .k = rows,
               .a_strides = {1, of.wide},
               .b_strides = {of.in, 1},
               .operand_type = of.type},
              {.a = {of_inputs}, .b = {op.x}, .bias = {}, .c = {op.dw_ih}});
  if (of.time > 1) {
    add_product(to,
                {.m = of.wide,
                 .n = of.hidden,
                 .k = rows - of.batch,
                 .a_strides = {1, of.wide},
                 .b_strides = {of.hidden, 1},
                 .operand_type = of.type},
                {.a = reads(of_states).from(of.gates(1, of.type)),
                 .b = {op.h},
                 .bias = {},
                 .c = {op.dw_hh}});
  } else {
    to.add(OpCategory::elementwise, 1, {writes(op.dw_hh)},
           [n = to.count(op.dw_hh)](const Invocation& call) {
             std::fill_n(call.operand<float>(0), n, 0.0F);
           });
  }
}

// ---- A layer of LSTM: products over all time steps at once where the recurrence allows it, one
// for each step where not, and a loop over the cells of each step.

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

// ---- A layer of GRU: as one of LSTM, but that a gate stands between the two products, which are
// therefore kept apart.

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
