// SPDX-License-Identifier: Apache-2.0
// A linear layer: one product forward; two, and a sum for the bias, backward.
#include "../column_sums.h"
#include "../product.h"
#include "operations.h"

namespace crossover::cpu {

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
              {.a = {op.x}, .b = {op.w}, .bias = {op.bias}, .c = {op.y}});
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
                {.a = {op.dy}, .b = {op.w}, .c = {op.dx}});
    if (op.x_activation != Activation::identity) {
      lower(ActivateGrad{.at = op.x, .dy = op.dx, .dx = op.dx, .activation = op.x_activation}, to);
    }
  }
  if (op.dbias != none) {
    add_column_sums(to, op.dy, op.dbias, op.accumulate);
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
              {.a = {op.dy}, .b = {op.x}, .c = {op.dw}});
}

}  // namespace crossover::cpu
