// SPDX-License-Identifier: Apache-2.0
#include "gather.h"

namespace crossover::cuda {
namespace {

GatherArguments gather_arguments(const StepPlan& step, const Binding& binding) {
  GatherArguments of;
  for (const StagedInput& input : step.inputs) {
    of.span[of.count++] = {
        .from = binding.address<const std::byte>((*binding.plan)[input.source].offset),
        .to = binding.address<std::byte>(input.staged),
        .row_bytes = input.row_bytes,
        .unit = input.unit,
        .count = input.bytes / input.unit};
  }
  of.run = binding.run_counter();
  of.order = binding.address<const OrderedRun>(binding.plan->order);
  return of;
}

}  // namespace

void gather(const StepPlan& step, const Binding& binding) {
  if (!step.inputs.empty()) {
    gather(binding.stream, gather_arguments(step, binding));
  }
}

void gather_in_loop(const StepPlan& step, const Binding& binding, const LoopCondition& condition) {
  gather_in_loop(binding.stream, gather_arguments(step, binding), condition);
}

}  // namespace crossover::cuda
