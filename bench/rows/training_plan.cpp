// SPDX-License-Identifier: Apache-2.0
#include "rows/training_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <variant>
#include <vector>

#include "crossover/backend_over.h"
#include "crossover/cost.h"
#include "crossover/shared_training.h"
#include "rows/row.h"
#include "rows/training.h"
#include "rows/work.h"

namespace crossover::bench {

namespace {

/// The most that the reference may take before a smaller batch stands for the row's own.
constexpr double most_verification_seconds = 6;
constexpr std::int64_t least_batch = 2;

}  // namespace

TrainingOptions of_one_step(TrainingOptions options, std::int64_t batch) {
  options.batch = std::min(batch, options.rows);
  options.rows = options.batch;
  return options;
}

TrainingOptions of_one_copy(TrainingOptions options) {
  options.copies = 1;
  return options;
}

Workload workload_of(const TrainingPlan& plan) {
  return plan.trains ? training_epoch(plan.task.model, plan.options)
                     : forward_pass(plan.task.model, plan.options.batch, plan.options.precision);
}

double approximate_flops(const TrainingPlan& plan) {
  TrainingPlan step = plan;
  step.options = of_one_step(plan.options, plan.options.batch);
  return cost(workload_of(step)).flops * static_cast<double>(plan.options.rows) /
         static_cast<double>(step.options.batch);
}

TrainingPlan trained_in(TrainingPlan plan, const Configuration& mode) {
  plan.options.zero_gradients = value_or_unsaid(mode, "zero") == "keep";
  return plan;
}

Dataset first_rows(const Dataset& all, std::int64_t rows) {
  const auto part = [&](const auto& values) {
    const auto count = std::ssize(values) / all.rows * rows;
    return std::remove_cvref_t<decltype(values)>(values.begin(), values.begin() + count);
  };
  return {.source = all.source,
          .sample = all.sample,
          .rows = rows,
          .inputs = part(all.inputs),
          .labels = part(all.labels),
          .targets = part(all.targets)};
}

double flops_of_step(const TrainingPlan& plan) {
  const auto batch = static_cast<double>(std::min(plan.options.batch, plan.options.rows));
  return plan.flops * batch / static_cast<double>(plan.options.rows);
}

VerificationPlan verification_plan(const TrainingPlan& plan) {
  const double of_step = flops_of_step(plan);
  const double of_two = static_cast<double>(verified_steps) * of_step;
  const double affordable = reference_flops_per_second * most_verification_seconds;
  const std::int64_t own = std::min(plan.options.batch, plan.options.rows);
  if (2 * of_two <= affordable || own <= least_batch) {
    const double more = reference_flops_per_second * more_steps_seconds;
    return {.flops_of_steps = std::max(of_two, std::min(plan.flops, more)),
            .flops_of_operations = of_two};
  }
  constexpr double forward_share = 1.0 / 3;  // two of the three products of a layer are gradients
  const double of_loss = forward_share * of_step;
  std::int64_t batch = least_batch;
  const auto of_smaller = [&](std::int64_t rows) {
    return of_two * static_cast<double>(rows) / static_cast<double>(own);
  };
  while (2 * batch < own && of_loss + 2 * of_smaller(2 * batch) <= affordable) {
    batch *= 2;
  }
  return {.batch = batch,
          .flops_of_loss = of_loss,
          .flops_of_steps = of_smaller(batch),
          .flops_of_operations = of_smaller(batch)};
}

// ---- training ranks

bool differs_by_shares(const Workload& workload) {
  const std::vector<Op>& ops = workload.steps.front().ops;
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) {
    const auto* norm = std::get_if<Norm>(&op);
    return std::holds_alternative<Dropout>(op) ||
           (norm != nullptr && norm->kind == NormKind::batch);
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

Target as_chosen(Target target, const Result& result) {
  if (!result.chosen.empty()) {
    const CompileOptions options = options_of(result.chosen);
    target.options.execution = options.execution;
    target.options.threads = options.threads;
    target.options.products = options.products;
    target.options.convolutions = options.convolutions;
  }
  target.options.graph_form = result.graph_form;
  return target;
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
  if (plan.options.copies > 1) {
    return make_copies_backend(own, plan.options.copies);
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
