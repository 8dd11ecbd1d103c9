// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "../step_planner.h"
#include "operations.h"

namespace crossover::cuda {

// ---- Batch normalization

namespace {

/// As many parts as occupy a GPU, each with some rows for every thread.
ChannelSums<Planned> sums_of(Id x, StepPlanner& step) {
  constexpr std::int64_t bytes_of_a_block =
      std::int64_t{32} * 16;  // across: a vector for each thread of a warp
  constexpr std::int64_t enough_blocks = 512;
  constexpr std::int64_t least_rows = 64;  // of a part
  constexpr std::int64_t kinds = 2;
  ChannelSums<Planned> sums{.images = step.by_channel(x)};
  const ChannelView& images = sums.images;
  const bool plain = images.inner > 1;
  if (plain && images.rows() > std::numeric_limits<std::int32_t>::max()) {
    throw Unsupported("the GPU backend normalizes at most 2^31 - 1 numbers of a channel, not " +
                      crossover::to_string(step.shape(x)));
  }
  const std::int64_t numbers_of_a_block = bytes_of_a_block / bytes(step.type(x));
  const std::int64_t channels_of_a_block = plain ? 1 : numbers_of_a_block;
  const std::int64_t blocks = (images.channels + channels_of_a_block - 1) / channels_of_a_block;
  const std::int64_t rows = images.rows() / (plain ? numbers_of_a_block : 1);
  sums.chunks = std::max<std::int64_t>(std::min(enough_blocks / blocks, rows / least_rows), 1);
  sums.partial = step.scratch(sums.chunks * kinds * images.channels * bytes(Type::f32));
  return sums;
}

void plan_batch(const Norm& op, StepPlanner& step) {
  const ChannelSums<Planned> sums = sums_of(op.x, step);
  const Operand mean = step.operand(op.mean);
  const Operand inverse_deviation = step.operand(op.inverse_deviation);
  step.emit(BatchNormStatisticsLaunch{step.operand(op.x), sums});
  step.emit(BatchNormMomentsLaunch{sums, mean, inverse_deviation, static_cast<float>(op.epsilon)});
  step.emit(BatchNormLaunch{.x = step.operand(op.x),
                            .scale = step.operand(op.scale),
                            .shift = step.operand(op.shift),
                            .addend = step.operand(op.addend),
                            .y = step.operand(op.y),
                            .mean = mean,
                            .inverse_deviation = inverse_deviation,
                            .images = sums.images,
                            .activation = op.activation});
}

void plan_batch(const NormGrad& op, StepPlanner& step) {
  const BatchNormGradSumsLaunch of{.x = step.operand(op.x),
                                   .mean = step.operand(op.mean),
                                   .inverse_deviation = step.operand(op.inverse_deviation),
                                   .y = step.operand(op.y),
                                   .dy = step.operand(op.dy),
                                   .dy_more = step.operand(op.dy_more),
                                   .sums = sums_of(op.x, step),
                                   .activation = op.activation};
  const Operand dscale = step.operand(op.dscale);
  const Operand dshift = step.operand(op.dshift);
  step.emit(of);
  step.emit(BatchNormGradTotalsLaunch{of.sums, dscale, dshift});
  step.emit(BatchNormGradLaunch{.of = of,
                                .scale = step.operand(op.scale),
                                .dscale = dscale,
                                .dshift = dshift,
                                .dx = step.operand(op.dx),
                                .daddend = step.operand(op.daddend)});
}

// ---- Of groups, and of layers, whose rows are images of one pixel

GroupedImages grouped(NormKind kind, Id x, std::int64_t groups, const StepPlanner& step) {
  const Shape& shape = step.shape(x);
  if (kind == NormKind::layer) {
    return {.batch = step.rows(x), .channels = shape.back()};
  }
  return {.batch = shape[0],
          .channels = shape[1],
          .pixels = shape[2] * shape[3],
          .groups = groups,
          .layout = step.layout(x)};
}

/// Of many rows in parts, so that few channels occupy a whole GPU.
void plan_parameters(const NormGrad& op, const GroupedImages& images, StepPlanner& step) {
  constexpr std::int64_t channels_of_a_block = 32;
  constexpr std::int64_t enough_blocks = 256;
  constexpr std::int64_t least_rows = 64;  // of a part
  const std::int64_t blocks = (images.channels + channels_of_a_block - 1) / channels_of_a_block;
  const bool in_one = images.layout == Layout::plain && !images.are_rows();
  const std::int64_t parts =
      in_one ? 1 : std::min(enough_blocks / blocks, images.batch * images.pixels / least_rows);
  const Operand dscale = step.operand(op.dscale);
  const Operand dshift = step.operand(op.dshift);
  GroupNormGradSumsLaunch sums{.x = step.operand(op.x),
                               .mean = step.operand(op.mean),
                               .inverse_deviation = step.operand(op.inverse_deviation),
                               .dy = step.operand(op.dy),
                               .products = dscale,
                               .sums = dshift,
                               .images = images};
  if (parts < 2) {
    step.emit(sums);
    return;
  }
  sums.parts = parts;
  sums.products = step.scratch(parts * images.channels * bytes(Type::f32));
  if (op.dshift != none) {
    sums.sums = step.scratch(parts * images.channels * bytes(Type::f32));
  }
  step.emit(sums);
  step.emit_column_sums(sums.products, dscale, parts, images.channels);
  if (op.dshift != none) {
    step.emit_column_sums(sums.sums, dshift, parts, images.channels);
  }
}

}  // namespace

void plan_operation(const Norm& op, StepPlanner& step) {
  if (op.kind == NormKind::batch) {
    return plan_batch(op, step);
  }
  step.emit(GroupNormLaunch{.x = step.operand(op.x),
                            .scale = step.operand(op.scale),
                            .shift = step.operand(op.shift),
                            .y = step.operand(op.y),
                            .mean = step.operand(op.mean),
                            .inverse_deviation = step.operand(op.inverse_deviation),
                            .images = grouped(op.kind, op.x, op.groups, step),
                            .epsilon = static_cast<float>(op.epsilon)});
}

void plan_operation(const NormGrad& op, StepPlanner& step) {
  if (op.kind == NormKind::batch) {
    return plan_batch(op, step);
  }
  const GroupedImages images = grouped(op.kind, op.x, op.groups, step);
  if (op.dscale != none) {
    plan_parameters(op, images, step);
  }
  if (op.dx != none) {
    step.emit(GroupNormGradLaunch{.x = step.operand(op.x),
                                  .scale = step.operand(op.scale),
                                  .mean = step.operand(op.mean),
                                  .inverse_deviation = step.operand(op.inverse_deviation),
                                  .dy = step.operand(op.dy),
                                  .dx = step.operand(op.dx),
                                  .images = images});
  }
}

}  // namespace crossover::cuda
