// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

/// cT [n, m] = op(b)T [n, k] op(a)T [k, m]: a matrix that is not transposed here is transposed in
/// column-major terms already.
void plan_operation(const Gemm& gemm, StepPlanner& step) {
  const ProductForm form{.m = step.shape(gemm.c)[1],
                         .n = step.shape(gemm.c)[0],
                         .k = step.shape(gemm.a)[gemm.transpose_a ? 0 : 1],
                         .transpose_a = gemm.transpose_b,
                         .transpose_b = gemm.transpose_a,
                         .alignment_a = step.alignment(gemm.b),
                         .alignment_b = step.alignment(gemm.a),
                         .alignment_d = step.alignment(gemm.c),
                         .factors = step.type(gemm.a),
                         .result = step.type(gemm.c)};
  step.emit_product(step.require(form), gemm.b, gemm.a, gemm.c);
}

}  // namespace crossover::cuda
