// SPDX-License-Identifier: Apache-2.0
#include "families/training/plan.h"

#include <algorithm>
#include <stdexcept>

#include "crossover/backend_over.h"
#include "crossover/cost.h"
#include "crossover/product.h"
#include "crossover/shared_training.h"
#include "families/training/references.h"
#include "families/work.h"

namespace crossover::bench {
namespace {

/// The most that the reference may take before a smaller batch stands for the row's own.
constexpr double most_verification_seconds = 6;
constexpr std::int64_t least_batch = 2;

/// Throws UsageError where it is beyond counting.
TrainingPlan plan_with_flops(const Arguments& arguments, const Task& task,
                             const TrainingOptions& options, Trains trains) {
  TrainingPlan plan{.task = task,
                    .options = options,
                    .trains = trains,
                    .loss_every_step = arguments.loss_every_step};
  try {
    plan.flops = approximate_flops(plan);
  } catch (const std::overflow_error& error) {
    throw UsageError(task.model.name + ": " + error.what());
  }
  return plan;
}

/// That no flag names: the sweep's where it has some, beside or in place of the network's own.
std::vector<std::int64_t> batches_for(const Arguments& arguments, Trains trains, const Task& task) {
  const Sweep& sweep = arguments.sweep;
  if (!arguments.batches.empty()) {
    return arguments.batches;
  }
  if (trains == Trains::forward_passes) {
    return sweep.forward_batches;
  }
  std::vector<std::int64_t> batches{task.batch};
  if (trains == Trains::epochs && contains(sweep.moved_models, task.model.name)) {
    batches.insert(batches.end(), sweep.further_batches.begin(), sweep.further_batches.end());
  }
  return batches;
}

}  // namespace

std::vector<TrainingPlan> training_plans(const Arguments& arguments, Trains trains,
                                         References& references) {
  std::vector<TrainingPlan> plans;
  const bool of_steps = trains != Trains::epochs;
  const std::vector<Task>& tasks = trains == Trains::epochs  ? arguments.tasks
                                   : trains == Trains::steps ? arguments.minibatch_tasks
                                                             : arguments.forward_tasks;
  for (const Task& task : tasks) {
    const TrainingData* const own = references.own_data(task);
    for (const std::int64_t asked : batches_for(arguments, trains, task)) {
      const std::int64_t rows = own != nullptr ? own->rows.rows : of_steps ? asked : task.rows;
      const std::int64_t batch = std::min(asked, rows);  // two that come to the same are one row
      for (const Precision precision : arguments.precisions) {
        TrainingOptions options{
            .rows = rows, .batch = batch, .optimizer = task.optimizer, .precision = precision};
        if (of_steps) {
          plans.push_back(plan_with_flops(arguments, task, of_one_step(options, batch), trains));
          continue;
        }
        for (const std::int64_t accumulate : arguments.accumulate) {
          for (const bool shuffle : arguments.choices.of(&RowSpec::shuffle)) {
            options.accumulate = accumulate;
            options.shuffle = shuffle;
            for (const std::int64_t copies : arguments.copies) {
              options.copies = copies;
              plans.push_back(plan_with_flops(arguments, task, options, trains));
            }
          }
        }
      }
    }
  }
  return plans;
}

TrainingPlan training_plan_of(const RowSpec& row, const Arguments& arguments,
                              References& references) {
  const Trains trains = family_of(row).trains;
  const std::string& model = value_of(row, &RowSpec::model);
  const std::optional<Task> task = find_task(arguments, model, trains == Trains::steps);
  if (!task) {
    throw std::out_of_range("this worker knows no network '" + model + "'");
  }
  const TrainingData* const own = references.own_data(*task);
  TrainingOptions options{.rows = own != nullptr ? own->rows.rows : task->rows,
                          .batch = value_of(row, &RowSpec::batch),
                          .optimizer = task->optimizer,
                          .accumulate = row.accumulate,
                          .precision = options_of(row).precision,
                          .copies = row.copies,
                          .shuffle = row.shuffle,
                          .bucket_bytes = row.bucket_bytes};
  if (trains != Trains::epochs) {
    options.rows = options.batch;
  }
  return trained_in(plan_with_flops(arguments, *task, options, trains), row);
}

TrainingPlan trained_in(TrainingPlan plan, const RowSpec& mode) {
  plan.options.zero_gradients = mode.zero_gradients;
  return plan;
}

RowSpec work_of(const TrainingPlan& plan) {
  if (plan.trains == Trains::forward_passes) {
    return {.family = RowFamily::forward,
            .model = plan.task.model.name,
            .batch = plan.options.batch,
            .precision = plan.options.precision};
  }
  return {.family = plan.trains == Trains::steps ? RowFamily::minibatch : RowFamily::epoch,
          .model = plan.task.model.name,
          .batch = plan.options.batch,
          .precision = plan.options.precision,
          .accumulate = plan.options.accumulate,
          .copies = plan.options.copies,
          .shuffle = plan.options.shuffle,
          .loss_every_step = plan.loss_every_step};
}

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
  return plan.trains == Trains::forward_passes
             ? forward_pass(plan.task.model, plan.options.batch, plan.options.precision)
             : training_epoch(plan.task.model, plan.options);
}

double approximate_flops(const TrainingPlan& plan) {
  TrainingPlan step = plan;
  step.options = of_one_step(plan.options, plan.options.batch);
  return cost(workload_of(step)).flops * static_cast<double>(plan.options.rows) /
         static_cast<double>(step.options.batch);
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

std::int64_t rows_to_verify(const TrainingPlan& plan) {
  constexpr double seconds = 2;
  const double of_row = plan.flops / static_cast<double>(plan.options.batch);
  return static_cast<std::int64_t>(std::clamp(seconds * reference_flops_per_second / of_row, 1.0,
                                              static_cast<double>(plan.options.batch)));
}

Target as_chosen(Target target, const Result& result) {
  if (result.chosen) {
    const CompileOptions options = options_of(*result.chosen);
    target.options.execution = options.execution;
    target.options.threads = options.threads;
    target.options.products = options.products;
    target.options.convolutions = options.convolutions;
  }
  target.options.graph_form = result.graph_form;
  return target;
}

std::shared_ptr<const Backend> backend_of(const TrainingPlan& plan, const Target& target) {
  const Backend& own = *target.device->backend;
  const bool shuffle = plan.options.shuffle;
  if (shuffle && target.device->has_own_memory()) {
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
