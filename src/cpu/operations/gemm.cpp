// SPDX-License-Identifier: Apache-2.0
#include "../product.h"
#include "operations.h"

namespace crossover::cpu {

void lower(const Gemm& op, Lowering& to) {
  const std::int64_t m = to[op.c].shape[0];
  const std::int64_t n = to[op.c].shape[1];
  const std::int64_t k = to[op.a].shape[op.transpose_a ? 0 : 1];
  ProductShape shape{.m = m,
                     .n = n,
                     .k = k,
                     .a_strides = {k, 1},
                     .b_strides = {n, 1},
                     .operand_type = to[op.a].type,
                     .result_type = to[op.c].type};
  if (op.transpose_a) {
    shape.a_strides = {1, m};
  }
  if (op.transpose_b) {
    shape.b_strides = {1, k};
  }
  add_product(to, shape, {.a = {op.a}, .b = {op.b}, .c = {op.c}});
}

}  // namespace crossover::cpu
