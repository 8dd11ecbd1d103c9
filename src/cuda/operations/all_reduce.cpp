// SPDX-License-Identifier: Apache-2.0
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

/// A call of the library costs more than a few numbers do: one for all tensors that lie one after
/// another.
void plan_operation(const AllReduce& op, StepPlanner& step) {
  SumLaunch sum{.spans = {}, .beside = step.overlaps_sums()};
  for (const Id id : op.tensors) {
    const Operand tensor = step.operand(id);
    if (!sum.spans.empty()) {
      SumLaunch::Span& last = sum.spans.back();
      const std::int64_t padded =
          round_up(last.count * bytes(Type::f32), step.parameter_alignment());
      if (last.first.offset + padded == tensor.offset) {
        last.first.bytes = tensor.offset + tensor.bytes - last.first.offset;
        last.count = padded / bytes(Type::f32) + step.count(id);
        continue;
      }
    }
    sum.spans.push_back({.first = tensor, .count = step.count(id)});
  }
  step.emit(std::move(sum));
}

}  // namespace crossover::cuda
