// SPDX-License-Identifier: Apache-2.0
// A linear layer: one product forward; two, and a sum for the bias, backward.
#include <algorithm>

#include "../product.h"
#include "../split.h"
#include "crossover/float16.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

/// sums [columns] (+)= the sums of matrix [rows, columns] over its rows.
template <class T>
void column_sums(int threads, const T* matrix, std::int64_t rows, std::int64_t columns,
                 bool accumulate, float* sums) {
  split(threads, columns, [=](std::int64_t begin, std::int64_t end) {
    if (!accumulate) {
      std::fill(sums + begin, sums + end, 0.0F);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* row = matrix + r * columns;
      for (std::int64_t c = begin; c < end; ++c) {
        sums[c] += widened(row[c]);
      }
    }
  });
}

}  // namespace

void lower(const Linear& op, Lowering& to) {
  const std::int64_t in = to[op.w].shape[1];
  const std::int64_t out = to[op.w].shape[0];
  add_product(to,
              {.m = leading(to[op.x].shape),
               .n = out,
               .k = in,
               .a_strides = {in, 1},
               .b_strides = {1, in},
               .bias = op.bias != none,
               .activation = op.activation,
               .operand_type = to[op.x].type,
               .result_type = to[op.y].type},
              {.a = op.x, .b = op.w, .bias = op.bias, .c = op.y});
}

void lower(const LinearGrad& op, Lowering& to) {
  const std::int64_t in = to[op.w].shape[1];
  const std::int64_t out = to[op.w].shape[0];
  const std::int64_t batch = leading(to[op.x].shape);
  if (op.dx != none) {
    add_product(to,
                {.m = batch,
                 .n = in,
                 .k = out,
                 .a_strides = {out, 1},
                 .b_strides = {in, 1},
                 .operand_type = to[op.x].type,
                 .result_type = to[op.dx].type},
                {.a = op.dy, .b = op.w, .c = op.dx});
    if (op.x_activation != Activation::identity) {
      lower(ActivateGrad{.y = op.x, .dy = op.dx, .dx = op.dx, .activation = op.x_activation}, to);
    }
  }
  if (op.dbias != none) {
    with_float(to[op.dy].type, [&](auto zero) {
      using T = decltype(zero);
      to.add(OpCategory::elementwise, to.threads_for(op.dy),
             {reads(op.dy), op.accumulate ? updates(op.dbias) : writes(op.dbias)},
             [batch, out, accumulate = op.accumulate](const Invocation& call) {
               column_sums(call.threads, call.operand<const T>(0), batch, out, accumulate,
                           call.operand<float>(1));
             });
    });
  }
  add_product(to,
              {.m = out,
               .n = in,
               .k = batch,
               .a_strides = {1, out},
               .b_strides = {in, 1},
               .accumulate = op.accumulate,
               .operand_type = to[op.x].type,
               .result_type = to[op.dw].type},
              {.a = op.dy, .b = op.x, .c = op.dw});
}

}  // namespace crossover::cpu
