// SPDX-License-Identifier: Apache-2.0
#include <variant>

#include "../step_planner.h"
#include "operations.h"

namespace crossover::cuda {

// ---- Rearrange

namespace {

ChannelsLie channels_of(Id id, const StepPlanner& step) {
  const Arrangement lies = step.arrangement(id);
  return {lies.channels, lies.pixels, lies.channels};
}

}  // namespace

/// A launch for each block.
void plan_operation(const Rearrange& op, StepPlanner& step) {
  for (std::size_t i = 0; i < op.y.size(); ++i) {
    if (!op.fills(i, step.count(op.y[i]))) {  // an odd number of 16 bits ends in padding
      Operand whole = step.operand(op.y[i]);
      whole.bytes = round_up(step.count(op.y[i]) * bytes(step.type(op.y[i])), bytes(Type::f32));
      step.emit(ZeroLaunch{whole, whole.bytes / bytes(Type::f32)});
    }
  }
  for (const CopiedBlock& block : op.blocks) {
    const Id from = op.x[static_cast<std::size_t>(block.from)];
    const Id to = op.y[static_cast<std::size_t>(block.to)];
    // No layout of the GPU's has blocks of channels that could be cut.
    const CopiedBlock lies = lying(block, channels_of(from, step), channels_of(to, step)).value();
    if (lies.extents.size() > CopiedExtents::most) {
      throw Unsupported("the GPU backend copies blocks of at most eight dimensions");
    }
    RearrangeLaunch launch{.from = step.operand(from),
                           .to = step.operand(to),
                           .from_first = lies.from_first,
                           .to_first = lies.to_first,
                           .count = lies.count(),
                           .extents = {}};
    launch.extents.used = static_cast<int>(lies.extents.size());
    for (std::size_t e = 0; e < lies.extents.size(); ++e) {
      launch.extents.count[e] = lies.extents[e].count;
      launch.extents.from[e] = lies.extents[e].from_step;
      launch.extents.to[e] = lies.extents[e].to_step;
    }
    step.emit(launch);
  }
}

// ---- Reshape

void plan_operation(const Reshape& op, StepPlanner& step) {
  if (bytes(step.type(op.x)) == 1) {
    throw Unsupported("the GPU backend has no Reshape of " + crossover::to_string(step.type(op.x)));
  }
  step.emit(ReshapeLaunch{step.operand(op.x), step.operand(op.y), step.count(op.x),
                          step.arrangement(op.x), step.arrangement(op.y)});
}

/// Nothing where an optimizer has written it. Joins the one before it where that is a Cast as
/// well: a step in 16 bits may begin with many.
void plan_operation(const Cast& cast, StepPlanner& step) {
  const Operand kept = step.kept(cast.y);
  const Operand y = step.operand(cast.y);
  if (kept.exists() && kept.offset == y.offset) {
    return;
  }
  const CastSpan<Planned> one{kept.exists() ? kept : step.operand(cast.x), y, step.count(cast.x)};
  auto* before = std::get_if<CastLaunch>(step.last_launch());
  if (before != nullptr && before->casts.size() < max_spans &&
      before->casts.front().x.type == one.x.type && before->casts.front().y.type == one.y.type) {
    before->casts.push_back(one);
  } else {
    step.emit(CastLaunch{{one}});
  }
}

}  // namespace crossover::cuda
