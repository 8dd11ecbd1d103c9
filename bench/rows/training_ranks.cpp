// SPDX-License-Identifier: Apache-2.0
#include "rows/training_ranks.h"

#include <stdexcept>
#include <variant>

#include "crossover/shared_training.h"
#include "rows/training.h"

namespace crossover::bench {

void require_alike_on_ranks(const Workload& workload) {
  for (const Op& op : workload.steps.front().ops) {
    const bool drops = std::holds_alternative<Dropout>(op);
    if (drops || std::holds_alternative<BatchNorm>(op)) {
      throw Unsupported(std::string("on several ranks ") +
                        (drops ? "dropout" : "batch normalization") +
                        " is another training than on one; networks with it have no such rows yet");
    }
  }
}

TrainingPlan share_of_first(TrainingPlan plan, int ranks) {
  plan.options = of_one_step(plan.options, rows_of_rank(plan.options.batch, 0, ranks));
  return plan;
}

Target alone(Target target) {
  target.ranks = 1;
  target.options.execution = Execution::eager;
  return target;
}

std::shared_ptr<const Backend> Training::backend_of(const TrainingPlan& plan,
                                                    const Target& target) {
  const Backend& own = *target.device->backend;
  if (target.ranks == 1) {
    return {std::shared_ptr<const Backend>(), &own};
  }
  if (target.joined == nullptr) {
    throw std::logic_error("a row of several ranks is made by one of them");
  }
  return make_shared_backend(*target.joined, own, target.row, plan.task.model, plan.options);
}

Followed Training::followed(const TrainingPlan& plan, const Target& target) {
  return {.backend = target.device->backend.get(),
          .model = plan.task.model,
          .whole = plan.options,
          .options = target.options};
}

}  // namespace crossover::bench
