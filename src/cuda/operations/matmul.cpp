// SPDX-License-Identifier: Apache-2.0
// Products of sequences and their softmax by kernels of ours, in any precision, as attention is:
// cuBLASLt is asked for no batched products.
#include "crossover/operations/matmul.h"

#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const Matmul& op, StepPlanner& step) {
  const auto steps = [&](Id id, bool transposed) {
    const MatricesOf of(step.shape(id), op.heads, transposed);
    return MatrixSteps{of.sample_step, of.head_step, of.row_step, of.column_step};
  };
  const MatricesOf left(step.shape(op.a), op.heads, op.transpose_a);
  const MatricesOf result(step.shape(op.y), op.heads, false);
  step.emit(MatmulLaunch{.a = step.operand(op.a),
                         .b = step.operand(op.b),
                         .y = step.operand(op.y),
                         .sizes = {.a = steps(op.a, op.transpose_a),
                                   .b = steps(op.b, op.transpose_b),
                                   .y = steps(op.y, false),
                                   .samples = result.samples,
                                   .heads = op.heads,
                                   .m = result.rows,
                                   .n = result.columns,
                                   .k = left.columns},
                         .scale = static_cast<float>(op.scale)});
}

void plan_operation(const Softmax& op, StepPlanner& step) {
  const std::int64_t keys = step.shape(op.x).back() / op.heads;
  step.emit(SoftmaxLaunch{.x = step.operand(op.x),
                          .y = step.operand(op.y),
                          .parts = step.count(op.x) / keys,
                          .keys = keys,
                          .parts_of_a_place = op.causal ? op.heads * step.shape(op.x)[1] : 0});
}

void plan_operation(const SoftmaxGrad& op, StepPlanner& step) {
  const std::int64_t keys = step.shape(op.y).back() / op.heads;
  step.emit(SoftmaxGradLaunch{.y = step.operand(op.y),
                              .dy = step.operand(op.dy),
                              .dx = step.operand(op.dx),
                              .parts = step.count(op.y) / keys,
                              .keys = keys});
}

}  // namespace crossover::cuda
