// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

#include <variant>

namespace crossover::cuda {

std::vector<BoundStep> bind_steps(const Binding& binding) {
  std::vector<BoundStep> steps;
  for (const StepPlan& step : binding.plan->steps) {
    BoundStep& bound = steps.emplace_back();
    for (const Launch& launch : step.launches) {
      // A launch without a call does not compile.
      bound.push_back(std::visit([&](const auto& what) { return bind(what, binding); }, launch));
    }
  }
  return steps;
}

}  // namespace crossover::cuda
