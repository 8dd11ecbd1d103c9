// SPDX-License-Identifier: Apache-2.0
// Products of sequences, their softmax, and gated recurrent units.
#include "cases.h"

namespace crossover {
namespace {

using Case = OperationCase;

/// Of the shapes of a and b.
Case matmul(const Shape& a, const Shape& b, Matmul op, const std::string& name) {
  OneOp one;
  const MatricesOf left(a, op.heads, op.transpose_a);
  const MatricesOf right(b, op.heads, op.transpose_b);
  op.a = one.tensor("a", a);
  op.b = one.tensor("b", b);
  const std::int64_t width = op.heads * right.columns;
  op.y = one.tensor("y", a.size() == 2 && !op.transpose_a ? Shape{left.samples, width}
                                                          : Shape{left.rows, left.samples, width});
  return {"Matmul_" + name, one.operation(op).workload};
}

Case softmax(const Shape& shape, std::int64_t heads, bool causal, const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x wide", shape);
  one.operation(Softmax{.x = x, .y = one.tensor("y", shape), .heads = heads, .causal = causal});
  return {"Softmax_" + name, one.workload};
}

Case softmax_grad(const Shape& shape, std::int64_t heads, const std::string& name) {
  OneOp one;
  const Id y = one.tensor("y positive", shape);
  const Id dy = one.tensor("dy", shape);
  one.operation(SoftmaxGrad{.y = y, .dy = dy, .dx = one.tensor("dx", shape), .heads = heads});
  return {"SoftmaxGrad_" + name, one.workload};
}

}  // namespace

std::vector<Case> product_cases() {
  return {
      matmul({1, 1, 1}, {1, 1, 1}, {}, "one"),
      matmul({5, 3, 7}, {7, 3, 4}, {}, "odd"),
      matmul({5, 3, 7}, {4, 3, 7}, {.transpose_b = true, .scale = 0.25}, "transposed"),
      matmul({7, 3, 5}, {7, 3, 4}, {.transpose_a = true}, "first_transposed"),
      matmul({5, 3, 8}, {6, 3, 8}, {.heads = 2, .transpose_b = true, .scale = 0.5}, "heads"),
      matmul({5, 3, 12}, {6, 3, 8}, {.heads = 2}, "of_heads"),
      matmul({3, 7}, {5, 3, 7}, {.transpose_b = true}, "of_a_vector"),
      matmul({3, 5}, {5, 3, 7}, {}, "of_weights"),
      matmul({3, 7}, {3, 7}, {.transpose_b = true}, "of_vectors"),
      matmul({3, 5}, {3, 7}, {.transpose_a = true}, "of_columns"),
      matmul({64, 8, 128}, {64, 8, 128}, {.heads = 2, .transpose_b = true}, "large"),
      matmul({64, 8, 128}, {64, 8, 96}, {.heads = 2}, "large_of_heads"),
      softmax({1, 1}, 1, false, "one"),
      softmax({5, 33}, 1, false, "odd"),
      softmax({4, 3, 12}, 3, false, "heads"),
      softmax({4, 3, 8}, 2, true, "causal"),
      softmax({5, 2, 3}, 1, true, "causal_of_fewer"),
      softmax({64, 8, 128}, 2, false, "large"),
      softmax_grad({1, 1}, 1, "one"),
      softmax_grad({5, 33}, 1, "odd"),
      softmax_grad({4, 3, 12}, 3, "heads"),
      softmax_grad({64, 8, 128}, 2, "large"),
  };
}

}  // namespace crossover
