// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/recurrent.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>

#include "../base/threads.h"
#include "../base/vector.h"
#include "../fused/kernels.h"
#include "../plan/primitives.h"
#include "operations.h"

namespace crossover::cpu {

// ---- A layer of recurrent units: products over all time steps at once where the recurrence allows
// it, one for each step where not, and a loop over the units of each step.

namespace {

struct StepSizes : RecurrentSizes {
  StepSizes(const Lowering& to, Id x, Id w_hh)
      : RecurrentSizes(to[x].shape, to[w_hh].shape), type(to[x].type) {}

  /// Bytes of so many time steps of [batch, hidden], or of [batch, wide].
  [[nodiscard]] std::int64_t bytes_of_states(std::int64_t steps, Type of) const {
    return steps * states() * bytes(of);
  }
  [[nodiscard]] std::int64_t bytes_of_gates(std::int64_t steps, Type of) const {
    return steps * gates() * bytes(of);
  }

  Type type;
};

/// work(part, element of a state, element of its first gate) for the cells of a time step.
template <class Work>
void for_each_cell(int threads, const StepSizes& of, const Work& work) {
  split(
      threads, of.batch,
      [&of, &work](std::int64_t begin, std::int64_t end) {
        const Work own = work;  // that no store can change: its pointers stay in registers
        const std::int64_t hidden = of.hidden;
        const std::int64_t wide = of.wide;
        for (std::int64_t row = begin; row < end; ++row) {
          for_each_vector(hidden, [&](auto part, std::int64_t unit) {
            own(part, row * hidden + unit, row * wide + unit);
          });
        }
      },
      1);
}

/// sums [time batch, wide] = x w_ihT.
void add_product_of_inputs(Lowering& to, const StepSizes& of, Id x, Id w_ih, const Argument& sums) {
  add_product(to,
              {.m = of.rows(),
               .n = of.wide,
               .k = of.in,
               .a_strides = {of.in, 1},
               .b_strides = {1, of.in},
               .b_is_constant = is_constant(to, w_ih),
               .operand_type = of.type},
              {.a = {x}, .b = {w_ih}, .bias = {}, .c = sums});
}

/// Products of one sample's state by constant weights, where a call of oneDNN's takes longer than
/// the work: weights lie in the order in which they are read, [wide / columns, hidden, columns].
class ProductOfOneState {
 public:
  ProductOfOneState(Lowering& to, const StepSizes& of, Id w_hh)
      : hidden_(of.hidden), wide_(of.wide), laid_(to.keep(of.wide * of.hidden * bytes(of.type))) {
    to.add_once(OpCategory::product, 1, {reads(w_hh), laid_},
                [hidden = hidden_, wide = wide_](const Invocation& call) {
                  const auto* from = call.operand<const float>(0);
                  auto* laid = call.operand<float>(1);
                  for_each_block(wide, [&](std::int64_t first, std::int64_t columns) {
                    for (std::int64_t i = 0; i < hidden; ++i) {
                      for (std::int64_t o = first; o < first + columns; ++o) {
                        *laid++ = from[o * hidden + i];
                      }
                    }
                  });
                });
  }

  static bool suits(const Lowering& to, const StepSizes& of, Id w_hh) {
    return of.batch == 1 && of.type == Type::f32 && of.wide % fused::floats_of_line == 0 &&
           is_constant(to, w_hh);
  }

  /// sums [wide] (+)= h w_hhT.
  void add(Lowering& to, const Argument& h, Argument sums, bool accumulate) const {
    sums.read = accumulate;
    sums.written = true;
    Argument weights = laid_;
    weights.written = false;
    to.add(OpCategory::product, 1, {h, weights, sums},
           [hidden = hidden_, wide = wide_, accumulate,
            pass = fused::best_kernels().pass](const Invocation& call) {
             const auto* state = call.operand<const float>(0);
             const auto* laid = call.operand<const float>(1);
             auto* into = call.operand<float>(2);
             if (!accumulate) {
               std::fill_n(into, wide, 0.0F);
             }
             for_each_block(wide, [&](std::int64_t first, std::int64_t columns) {
               const fused::PassLayer block{.in = hidden,
                                            .out = columns,
                                            .ld = columns,
                                            .x_stride = hidden,
                                            .y_stride = columns,
                                            .weights = laid + first * hidden,
                                            .bias = into + first};
               pass(block, state, into + first, 1);
             });
           });
  }

 private:
  /// work(first, count) for as many outputs at once as fill the registers.
  template <class Work>
  static void for_each_block(std::int64_t wide, const Work& work) {
    constexpr std::int64_t columns = 8 * fused::floats_of_line;
    for (std::int64_t first = 0; first < wide; first += columns) {
      work(first, std::min(columns, wide - first));
    }
  }

  std::int64_t hidden_, wide_;
  Argument laid_;
};

/// sums [batch, wide] (+)= h w_hhT of one time step.
void add_product_of_states(Lowering& to, const StepSizes& of, const Argument& h, Id w_hh,
                           const Argument& sums, bool accumulate) {
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
void add_product_to_states(Lowering& to, const StepSizes& of, const Argument& dsums, Id w_hh,
                           const Argument& carry, bool accumulate) {
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

/// dx, dw_ih and dw_hh from the gradients of both products of all time steps.
void add_products_over_time(Lowering& to, const StepSizes& of, const RecurrentGrad& op) {
  if (op.dx != none) {
    add_product(to,
                {.m = of.rows(),
                 .n = of.in,
                 .k = of.wide,
                 .a_strides = {of.wide, 1},
                 .b_strides = {of.in, 1},
                 .operand_type = of.type,
                 .result_type = of.type},
                {.a = {op.di}, .b = {op.w_ih}, .bias = {}, .c = {op.dx}});
  }
  add_product(to,
              {.m = of.wide,
               .n = of.in,
               .k = of.rows(),
               .a_strides = {1, of.wide},
               .b_strides = {of.in, 1},
               .operand_type = of.type},
              {.a = {op.di}, .b = {op.x}, .bias = {}, .c = {op.dw_ih}});
  if (of.time > 1) {
    add_product(to,
                {.m = of.wide,
                 .n = of.hidden,
                 .k = of.rows() - of.batch,
                 .a_strides = {1, of.wide},
                 .b_strides = {of.hidden, 1},
                 .operand_type = of.type},
                {.a = reads(op.of_states()).from(of.bytes_of_gates(1, of.type)),
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

void add_copy(Lowering& to, Id from, Id into) {
  to.add(OpCategory::elementwise, 1, {reads(from), writes(into)},
         [n = to.count(from)](const Invocation& call) {
           std::copy_n(call.operand<const float>(0), n, call.operand<float>(1));
         });
}

// ---- The units of a time step

template <class Unit, class T>
void forward_step(const StepSizes& of, const Invocation& call) {
  const auto* of_inputs = call.operand<const float>(0);  // sums of the products
  const auto* of_states = call.operand<const float>(1);  // nullptr: 0, or added to those of inputs
  const auto* b_ih = call.operand<const float>(2);
  const auto* b_hh = call.operand<const float>(3);
  const auto* before = call.operand<const Before<Unit, T>>(4);  // nullptr: 0
  auto* gates = call.operand<T>(5);
  auto* kept = call.operand<float>(6);
  auto* h = call.operand<T>(7);
  for_each_cell(call.threads, of, [=](auto part, std::int64_t at, std::int64_t first) {
    std::array<Floats, Unit::gates> i{};
    std::array<Floats, Unit::gates> k{};
    std::array<Floats, Unit::gates> made{};
#pragma GCC unroll 4
    for (std::size_t gate = 0; gate < Unit::gates; ++gate) {
      const std::int64_t offset = static_cast<std::int64_t>(gate) * of.hidden;
      i[gate] = load(part, of_inputs + first + offset) + load(part, b_ih + at % of.hidden + offset);
      k[gate] = load(part, b_hh + at % of.hidden + offset);
      if (Unit::is_apart && of_states != nullptr) {
        k[gate] += load(part, of_states + first + offset);
      }
    }
    const Floats from = before != nullptr ? load(part, before + at) : all(0);
    Floats keep;
    Floats state;
    Unit::template forward<VectorMaths>(i.data(), k.data(), from, made.data(), keep, state);
#pragma GCC unroll 4
    for (std::size_t gate = 0; gate < Unit::gates; ++gate) {
      store(part, made[gate], gates + first + static_cast<std::int64_t>(gate) * of.hidden);
    }
    store(part, keep, kept + at);
    store(part, state, h + at);
  });
}

/// `is_last`: of the sequence; nothing is carried yet.
template <class Unit, class T>
void backward_step(const StepSizes& of, bool is_last, const Invocation& call) {
  const auto* gates = call.operand<const T>(0);
  const auto* kept = call.operand<const float>(1);
  const auto* before = call.operand<const Before<Unit, T>>(2);  // nullptr: 0
  const auto* dh = call.operand<const T>(3);
  auto* di = call.operand<T>(4);
  auto* dk = call.operand<T>(5);
  auto* to_h = call.operand<float>(6);
  float* const to_before = Unit::keeps_state ? to_h + of.states() : to_h;
  for_each_cell(call.threads, of, [=](auto part, std::int64_t at, std::int64_t first) {
    std::array<Floats, Unit::gates> made{};
    std::array<Floats, Unit::gates> of_i{};
    std::array<Floats, Unit::gates> of_k{};
#pragma GCC unroll 4
    for (std::size_t gate = 0; gate < Unit::gates; ++gate) {
      made[gate] = load(part, gates + first + static_cast<std::int64_t>(gate) * of.hidden);
    }
    const Floats from = before != nullptr ? load(part, before + at) : all(0);
    Floats of_h = load(part, dh + at);
    Floats carried = all(0);
    if (!is_last) {
      of_h += load(part, to_h + at);
      carried = load(part, to_before + at);
    } else if (Unit::keeps_state) {
      store(part, all(0), to_h + at);
    }
    Unit::template backward<VectorMaths>(made.data(), load(part, kept + at), from, of_h, carried,
                                         of_i.data(), of_k.data());
#pragma GCC unroll 4
    for (std::size_t gate = 0; gate < Unit::gates; ++gate) {
      const std::int64_t to = first + static_cast<std::int64_t>(gate) * of.hidden;
      store(part, of_i[gate], di + to);
      if (Unit::is_apart) {
        store(part, of_k[gate], dk + to);
      }
    }
    store(part, carried, to_before + at);
  });
}

/// use(unit, 0 of the type in which its layer stores).
template <class Use>
void with_unit(const Cell& cell, Type type, const Use& use) {
  std::visit([&](auto unit) { with_float(type, [&](auto zero) { use(unit, zero); }); }, cell);
}

/// What goes on to time step t from the one before; none at first.
template <class Op>
Argument state_before(const Op& op, const StepSizes& of, std::int64_t t) {
  const bool keeps_state = facts_of(op.cell).keeps_state;
  const Type type = keeps_state ? Type::f32 : of.type;
  return t == 0 ? Argument{}
                : reads(keeps_state ? op.kept : op.h).from(of.bytes_of_states(t - 1, type));
}

}  // namespace

void lower(const Recurrent& op, Lowering& to) {
  const StepSizes of(to, op.x, op.w_hh);
  const bool is_apart = facts_of(op.cell).is_apart;
  // The sums of the products stay in f32 until the biases are added to them.
  const Argument of_inputs =
      of.type == Type::f32 ? updates(op.gates) : to.reserve(of.bytes_of_gates(of.time, Type::f32));
  const Argument of_states = is_apart ? to.reserve(of.bytes_of_gates(1, Type::f32)) : Argument{};
  add_product_of_inputs(to, of, op.x, op.w_ih, of_inputs);
  std::optional<ProductOfOneState> of_one_state;
  if (of.time > 1 && ProductOfOneState::suits(to, of, op.w_hh)) {
    of_one_state.emplace(to, of, op.w_hh);
  }
  const int threads = to.threads_for_bytes(static_cast<double>(of.bytes_of_gates(1, Type::f32)));
  for (std::int64_t t = 0; t < of.time; ++t) {
    const Argument sums = of_inputs.from(of.bytes_of_gates(t, Type::f32));
    if (t > 0) {
      const Argument h = reads(op.h).from(of.bytes_of_states(t - 1, of.type));
      const Argument& into = is_apart ? of_states : sums;
      if (of_one_state) {
        of_one_state->add(to, h, into, !is_apart);
      } else {
        add_product_of_states(to, of, h, op.w_hh, into, !is_apart);
      }
    }
    with_unit(op.cell, of.type, [&](auto unit, auto zero) {
      to.add(
          OpCategory::elementwise, threads,
          {sums, t > 0 ? of_states : Argument{}, reads(op.b_ih), reads(op.b_hh),
           state_before(op, of, t), updates(op.gates).from(of.bytes_of_gates(t, of.type)),
           updates(op.kept).from(of.bytes_of_states(t, Type::f32)),
           updates(op.h).from(of.bytes_of_states(t, of.type))},
          [of](const Invocation& call) { forward_step<decltype(unit), decltype(zero)>(of, call); });
    });
  }
}

void lower(const RecurrentGrad& op, Lowering& to) {
  const StepSizes of(to, op.x, op.w_hh);
  const Argument carry = updates(op.carry);
  const bool keeps_state = facts_of(op.cell).keeps_state;
  const int threads = to.threads_for_bytes(static_cast<double>(of.bytes_of_gates(1, Type::f32)));
  for (std::int64_t t = of.time - 1; t >= 0; --t) {
    const auto now = [&](Id sums) { return updates(sums).from(of.bytes_of_gates(t, of.type)); };
    with_unit(op.cell, of.type, [&](auto unit, auto zero) {
      to.add(OpCategory::elementwise, threads,
             {reads(op.gates).from(of.bytes_of_gates(t, of.type)),
              reads(op.kept).from(of.bytes_of_states(t, Type::f32)), state_before(op, of, t),
              reads(op.dh).from(of.bytes_of_states(t, of.type)), now(op.di),
              op.is_apart() ? now(op.dk) : Argument{}, carry},
             [of, is_last = t == of.time - 1](const Invocation& call) {
               backward_step<decltype(unit), decltype(zero)>(of, is_last, call);
             });
    });
    if (t > 0) {
      add_product_to_states(to, of, now(op.of_states()), op.w_hh, carry, !keeps_state);
    }
  }
  add_products_over_time(to, of, op);
  add_column_sums(to, op.di, op.db_ih, false);
  if (op.is_apart()) {
    add_column_sums(to, op.dk, op.db_hh, false);
  } else {
    add_copy(to, op.db_ih, op.db_hh);
  }
}

}  // namespace crossover::cpu
