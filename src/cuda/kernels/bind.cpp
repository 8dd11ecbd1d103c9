// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

#include <cstddef>
#include <variant>

namespace crossover::cuda {

namespace {

/// A launch without a call does not compile.
BoundLaunch bound(const Launch& launch, const Binding& binding) {
  return std::visit([&](const auto& what) { return bind(what, binding); }, launch);
}

}  // namespace

std::vector<BoundStep> bind_steps(const Binding& binding, cudaStream_t second) {
  std::vector<BoundStep> steps;
  for (const StepPlan& step : binding.plan->steps) {
    BoundStep& launches = steps.emplace_back();
    for (const Launch& launch : step.launches) {
      launches.push_back(bound(launch, binding));
    }
    for (const SideBySide& parts : step.side_by_side) {
      for (std::size_t i = parts.second; i < parts.end; ++i) {
        launches[i].beside = bound(step.launches[i], beside(binding, second)).call;
      }
    }
  }
  return steps;
}

}  // namespace crossover::cuda
