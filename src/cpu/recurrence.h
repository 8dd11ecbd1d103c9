// SPDX-License-Identifier: Apache-2.0
// What layers of recurrent units share: sizes, the loop over the cells of a time step, and the
// products of all time steps at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "product.h"
#include "split.h"
#include "vector.h"

namespace crossover::cpu {

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

}  // namespace crossover::cpu
