// SPDX-License-Identifier: Apache-2.0
#include "crossover/launches.h"

#include <iterator>

#include "plan.h"

namespace crossover {

std::int64_t cuda_launches(const Workload& workload, const CompileOptions& options) {
  const cuda::Plan plan =
      cuda::make_plan(workload, options, [](const cuda::ProductForm& /*form*/) { return true; });
  // A step's graph reads a fixed input; only a graph of the whole epoch reads the rows in place.
  const bool in_place = options.placement == Placement::resident &&
                        (options.execution == Execution::eager ||
                         (options.execution == Execution::graph_epoch && !options.loss_every_step));
  std::int64_t sum = 0;
  for (const Run& run : workload.order) {
    const cuda::StepPlan& step = plan.steps[static_cast<std::size_t>(run.step)];
    sum += std::ssize(step.launches) + (in_place ? 0 : std::ssize(step.inputs)) +
           (options.loss_every_step ? 1 : 0);
  }
  return sum;
}

}  // namespace crossover
