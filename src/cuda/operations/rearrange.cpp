// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {
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

}  // namespace crossover::cuda
