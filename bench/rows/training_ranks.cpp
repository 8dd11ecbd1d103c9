// SPDX-License-Identifier: Apache-2.0
#include "rows/training_ranks.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <variant>
#include <vector>

#include "crossover/loader.h"
#include "crossover/shared_training.h"
#include "rows/facts.h"
#include "rows/training.h"

namespace crossover::bench {

bool differs_by_shares(const Workload& workload) {
  const std::vector<Op>& ops = workload.steps.front().ops;
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) {
    return std::holds_alternative<Dropout>(op) || std::holds_alternative<BatchNorm>(op);
  });
}

TrainingPlan in_turn(TrainingPlan plan, int ranks) {
  plan.options.ranks = ranks;
  plan.options.in_turn = true;
  return plan;
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
  const bool shuffle = plan.options.shuffle;
  if (shuffle && !target.device->is_host) {
    throw Unsupported(
        "a GPU takes the rows of an epoch as they lie; leave out --shuffle=epoch, or --cuda=off");
  }
  if (shuffle && target.ranks > 1) {
    throw Unsupported(
        "several ranks take the rows of an epoch as they lie; leave out --shuffle=epoch, or "
        "--ranks");
  }
  if (shuffle || target.loader > 0) {
    return make_loading_backend(own, target.loader);
  }
  if (target.ranks == 1) {
    return {std::shared_ptr<const Backend>(), &own};
  }
  if (target.joined == nullptr) {
    throw std::logic_error("a row of several ranks is made by one of them");
  }
  return make_shared_backend(*target.joined, own, configuration_json(target.row).dump(),
                             plan.task.model, plan.options);
}

}  // namespace crossover::bench
