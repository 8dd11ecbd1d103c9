// SPDX-License-Identifier: Apache-2.0
// Attention by kernels of ours, in any precision: cuBLASLt is asked for no batched products.
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {
namespace {

HeadSizes head_sizes(Id y, std::int64_t heads, bool causal, const StepPlanner& step) {
  const Shape& shape = step.shape(y);
  const HeadSizes sizes{
      .time = shape[0], .batch = shape[1], .heads = heads, .d = shape[2] / heads, .causal = causal};
  if (sizes.d > widest_head) {
    throw Unsupported("the GPU backend has no attention by heads wider than " +
                      std::to_string(widest_head) + ", like these of " + std::to_string(sizes.d) +
                      ": more heads are narrower");
  }
  return sizes;
}

}  // namespace

void plan_operation(const Attention& op, StepPlanner& step) {
  step.emit(AttentionLaunch{.qkv = step.operand(op.qkv),
                            .y = step.operand(op.y),
                            .log_sums = step.operand(op.log_sums),
                            .sizes = head_sizes(op.y, op.heads, op.causal, step)});
}

void plan_operation(const AttentionGrad& op, StepPlanner& step) {
  const HeadSizes sizes = head_sizes(op.y, op.heads, op.causal, step);
  const Operand expected = step.scratch(step.count(op.log_sums) * bytes(Type::f32));
  step.emit(AttentionGradQueriesLaunch{.qkv = step.operand(op.qkv),
                                       .y = step.operand(op.y),
                                       .log_sums = step.operand(op.log_sums),
                                       .dy = step.operand(op.dy),
                                       .expected = expected,
                                       .dqkv = step.operand(op.dqkv),
                                       .sizes = sizes});
  step.emit(AttentionGradKeysLaunch{.qkv = step.operand(op.qkv),
                                    .log_sums = step.operand(op.log_sums),
                                    .dy = step.operand(op.dy),
                                    .expected = expected,
                                    .dqkv = step.operand(op.dqkv),
                                    .sizes = sizes});
}

}  // namespace crossover::cuda
