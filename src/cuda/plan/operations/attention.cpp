// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "../step_planner.h"
#include "operations.h"

namespace crossover::cuda {

// ---- Embedding

void plan_operation(const Embedding& op, StepPlanner& step) {
  const Shape& tokens = step.shape(op.tokens);
  step.emit(EmbeddingLaunch{step.operand(op.tokens), step.operand(op.table), step.operand(op.y),
                            tokens[0], tokens[1], step.shape(op.table)[1]});
}

void plan_operation(const PositionEmbedding& op, StepPlanner& step) {
  const Shape& sequence = step.shape(op.x);
  step.emit(PositionEmbeddingLaunch{step.operand(op.x), step.operand(op.table), step.operand(op.y),
                                    sequence[0], sequence[1], sequence[2]});
}

void plan_operation(const PositionEmbeddingGrad& op, StepPlanner& step) {
  const Shape& sequence = step.shape(op.dy);
  step.emit(PositionEmbeddingGradLaunch{step.operand(op.dy), step.operand(op.dtable), sequence[0],
                                        sequence[1], sequence[2]});
}

void plan_operation(const EmbeddingGrad& op, StepPlanner& step) {
  const Shape& tokens = step.shape(op.tokens);
  step.emit(ZeroLaunch{step.operand(op.dtable), step.count(op.dtable)});
  step.emit(EmbeddingGradLaunch{step.operand(op.tokens), step.operand(op.dy),
                                step.operand(op.dtable), tokens[0], tokens[1],
                                step.shape(op.dtable)[1]});
}

// ---- Attention in 16 bits by cuDNN where it has a plan, else by kernels of ours, in any
// precision: cuBLASLt is asked for no batched products.

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

/// Whether it was one launch of cuDNN's. Of f32 cuDNN has none. A gradient that does not repeat to
/// the bit, as frameworks have it, still is many times as fast as kernels of ours.
bool take_sdpa(const HeadSizes& sizes, bool gradient, const std::vector<Id>& tensors,
               const SdpaLaunch& operands, StepPlanner& step) {
  SdpaLaunch launch = operands;
  launch.form = {.gradient = gradient,
                 .time = sizes.time,
                 .batch = sizes.batch,
                 .heads = sizes.heads,
                 .d = sizes.d,
                 .causal = sizes.causal,
                 .type = launch.qkv.type};
  // cuDNN lists the same plans for addresses of any alignment. Whether they run there nobody has
  // seen. Keys and values begin `width` numbers behind the queries.
  constexpr std::int64_t least_alignment = 16;
  const bool is_aligned = launch.form.width() * bytes(launch.form.type) % least_alignment == 0 &&
                          std::all_of(tensors.begin(), tensors.end(),
                                      [&](Id id) { return step.alignment(id) >= least_alignment; });
  if (bytes(launch.form.type) != 2 || !is_aligned) {
    return false;
  }
  if (!step.supports(launch.form)) {
    launch.form.repeats = false;
    if (!gradient || !step.supports(launch.form)) {
      return false;
    }
  }
  step.emit(launch);
  return true;
}

}  // namespace

void plan_operation(const Attention& op, StepPlanner& step) {
  const HeadSizes sizes = head_sizes(op.y, op.heads, op.causal, step);
  const SdpaLaunch operands{.form = {},
                            .qkv = step.operand(op.qkv),
                            .y = step.operand(op.y),
                            .log_sums = step.operand(op.log_sums),
                            .dy = {},
                            .dqkv = {}};
  if (take_sdpa(sizes, false, {op.qkv, op.y, op.log_sums}, operands, step)) {
    return;
  }
  step.emit(AttentionLaunch{
      .qkv = operands.qkv, .y = operands.y, .log_sums = operands.log_sums, .sizes = sizes});
}

void plan_operation(const AttentionGrad& op, StepPlanner& step) {
  const HeadSizes sizes = head_sizes(op.y, op.heads, op.causal, step);
  const SdpaLaunch operands{.form = {},
                            .qkv = step.operand(op.qkv),
                            .y = step.operand(op.y),
                            .log_sums = step.operand(op.log_sums),
                            .dy = step.operand(op.dy),
                            .dqkv = step.operand(op.dqkv)};
  if (take_sdpa(sizes, true, {op.qkv, op.y, op.log_sums, op.dy, op.dqkv}, operands, step)) {
    return;
  }
  const Operand expected = step.scratch(step.count(op.log_sums) * bytes(Type::f32));
  step.emit(AttentionGradQueriesLaunch{.qkv = operands.qkv,
                                       .y = operands.y,
                                       .log_sums = operands.log_sums,
                                       .dy = operands.dy,
                                       .expected = expected,
                                       .dqkv = operands.dqkv,
                                       .sizes = sizes});
  step.emit(AttentionGradKeysLaunch{.qkv = operands.qkv,
                                    .log_sums = operands.log_sums,
                                    .dy = operands.dy,
                                    .expected = expected,
                                    .dqkv = operands.dqkv,
                                    .sizes = sizes});
}

// ---- Softmax

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
