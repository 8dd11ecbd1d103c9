// SPDX-License-Identifier: Apache-2.0
#include "rows/training.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <variant>
#include <vector>

#include "command_line/networks.h"
#include "crossover/backend_over.h"
#include "crossover/cost.h"
#include "crossover/executions.h"
#include "crossover/fingerprint.h"
#include "crossover/machine.h"
#include "crossover/shared_training.h"
#include "rows/device.h"
#include "rows/row.h"
#include "rows/work.h"

namespace crossover::bench {
namespace {

/// What choosing an execution takes: on the CPU about this, and some steps; on a GPU some of both
/// for each of seven ways.
void add_choice(const TrainingPlan& plan, bool on_gpu, ExpectedWork& work) {
  constexpr double of_cpu = 0.2;
  constexpr double steps = 4;
  constexpr double ways = 7;
  constexpr double of_way = 0.1;
  constexpr double passes_of_way = 6;
  work.seconds_of_choice =
      on_gpu ? ways * of_way
             : of_cpu + steps * flops_of_step(plan) / expected_flops_of_a_thread_per_second;
  work.iterations_of_choice = on_gpu ? ways * passes_of_way : 0;
}

/// How the device can execute the network. The list of all steps may be too long to make: two
/// batches show whether their gradients are added up.
std::vector<Execution> executions_on(const Backend& backend, const TrainingPlan& plan) {
  TrainingPlan few = plan;
  few.options = of_one_copy(of_one_step(plan.options, plan.options.batch));
  few.options.rows *= std::min<std::int64_t>(2, plan.options.accumulate);
  return backend.executions(workload_of(few), plan.options.precision);
}

/// As rows of that mode train it.
TrainingPlan trained_in(TrainingPlan plan, const RowSpec& mode) {
  plan.options.zero_gradients = mode.zero_gradients;
  return plan;
}

/// Whether the device can run the network in a mode; asks it once for each way to train.
auto possible_on(const Backend& backend, const TrainingPlan& plan) {
  std::map<bool, std::vector<Execution>> known;  // by how gradients are kept
  return [&backend, &plan, known](const RowSpec& mode) mutable {
    const TrainingPlan own = trained_in(plan, mode);
    const auto [at, is_new] = known.try_emplace(own.options.zero_gradients);
    if (is_new) {
      at->second = executions_on(backend, own);
    }
    return contains(at->second, options_of(mode).execution);
  };
}

template <class Member, class Value>
RowSpec with(RowSpec mode, Member RowSpec::*member, const Value& value) {
  mode.*member = value;
  return mode;
}

void add_new(const RowSpec& mode, std::vector<RowSpec>& to) {
  if (!contains(to, mode)) {
    to.push_back(mode);
  }
}

/// With an execution that only ranks have.
bool is_of_ranks(const RowSpec& mode) {
  return facts_of(options_of(mode).execution).on_ranks_alone;
}

/// `on`: the device.
std::vector<Execution> executions_on_ranks(bool ExecutionFacts::*on, bool of_whole_order = true) {
  std::vector<Execution> all;
  for (const ExecutionFacts& one : execution_table) {
    if (one.on_ranks && one.*on && (of_whole_order || !one.of_whole_order)) {
      all.push_back(one.execution);
    }
  }
  return all;
}

/// Of the modes that were asked for those that several ranks can run; all that they can, `every`
/// one, where `modes` are the sweep's, or none of them is one.
std::vector<RowSpec> modes_on_ranks(const std::vector<RowSpec>& modes, bool are_asked_for,
                                    const std::vector<Execution>& every) {
  std::vector<RowSpec> possible;
  std::ranges::copy_if(modes, std::back_inserter(possible), [&](const RowSpec& mode) {
    return are_asked_for && contains(every, value_of(mode, &RowSpec::execution));
  });
  if (!possible.empty()) {
    return possible;
  }
  for (const RowSpec& mode : modes) {
    for (const Execution execution : every) {
      add_new(with(mode, &RowSpec::execution, execution), possible);
    }
  }
  return possible;
}

/// Of those of one process as many as leave a core to each thread, or the fewest.
std::vector<int> threads_of_rank(std::vector<int> counts, int ranks) {
  const int fewest = *std::ranges::min_element(counts);
  std::erase_if(counts,
                [&](int count) { return count > fewest && count * ranks > usable_cores(); });
  return counts;
}

bool asks_for_execution(const Arguments& arguments, AxisDevices device) {
  return arguments.choices.has_on(axis_of(&RowSpec::execution), device, /*training=*/true);
}

/// Of the sweep's executions a network has those that the CPU can run it with, and eager for the
/// others; those that were asked for become rows that say so.
std::vector<RowSpec> cpu_modes(const Arguments& arguments, const TrainingPlan& plan,
                               const Backend& cpu) {
  std::vector<RowSpec> modes = arguments.cpu_modes.of_training;
  std::erase_if(modes, [](const RowSpec& mode) { return is_of_ranks(mode); });
  if (asks_for_execution(arguments, AxisDevices::cpu)) {
    return modes;
  }
  auto is_possible = possible_on(cpu, plan);
  std::vector<RowSpec> possible;
  for (const RowSpec& mode : modes) {
    add_new(is_possible(mode) ? mode : with(mode, &RowSpec::execution, Execution::eager), possible);
  }
  return possible;
}

/// Each with each number of threads that load batches; a step alone has its batch.
std::vector<RowSpec> loaded(const Arguments& arguments, Trains trains,
                            const std::vector<RowSpec>& modes) {
  if (trains == Trains::steps) {
    return modes;
  }
  std::vector<RowSpec> all;
  for (const RowSpec& mode : modes) {
    for (const int workers : arguments.choices.of(&RowSpec::loader)) {
      all.push_back(with(mode, &RowSpec::loader, workers));
    }
  }
  return all;
}

/// Of the sweep's executions few networks have a persistent one; rows that were asked for say why.
std::vector<RowSpec> gpu_modes(const Arguments& arguments, Trains trains, const TrainingPlan& plan,
                               const Backend& gpu) {
  std::vector<RowSpec> modes = trains == Trains::forward_passes ? arguments.forward_gpu_modes
                                                                : arguments.gpu_modes.of_training;
  std::erase_if(modes, [](const RowSpec& mode) { return is_of_ranks(mode); });
  if (!asks_for_execution(arguments, AxisDevices::gpu)) {
    auto is_possible = possible_on(gpu, plan);
    std::erase_if(modes, [&](const RowSpec& mode) { return !is_possible(mode); });
  }
  if (trains == Trains::steps) {
    // A graph, or a kernel, is that of the step. A large step hides how its batch is copied, so
    // that the best and no copy do, unless others are asked for.
    const bool every_placement =
        arguments.sweep.every_minibatch_placement || arguments.choices.has(&RowSpec::placement);
    std::erase_if(modes, [&](const RowSpec& mode) {
      const CompileOptions options = options_of(mode);
      return facts_of(options.execution).of_whole_order ||
             (!every_placement &&
              (options.placement == Placement::pageable || options.placement == Placement::pinned));
    });
  }
  return modes;
}

/// How gradients are kept says nothing of a pass.
std::vector<RowSpec> of_passes(const std::vector<RowSpec>& modes) {
  std::vector<RowSpec> all;
  for (const RowSpec& mode : modes) {
    if (is_of_passes(mode)) {
      add_new(with(mode, &RowSpec::zero_gradients, false), all);
    }
  }
  return all;
}

/// A part of an epoch is no graph of its own in rows of single steps.
std::vector<RowSpec> gpu_modes_on_ranks(const Arguments& arguments, Trains trains) {
  const std::vector<Execution> every =
      executions_on_ranks(&ExecutionFacts::on_gpu, trains == Trains::epochs);
  const bool asked_for =
      arguments.choices.has(&RowSpec::placement) || asks_for_execution(arguments, AxisDevices::gpu);
  std::vector<RowSpec> modes = arguments.gpu_modes.of_training;
  for (RowSpec& mode : modes) {
    if (!asked_for) {
      mode.placement = Placement::resident;
    }
    if (!arguments.choices.has(&RowSpec::products)) {
      mode.products = ProductChoice::heuristic;
    }
  }
  return modes_on_ranks(modes, asked_for, every);
}

std::vector<int> thread_counts_of(const Arguments& arguments, Trains trains) {
  return thread_counts(arguments, trains == Trains::epochs ? arguments.sweep.threads
                                                           : arguments.sweep.minibatch_threads);
}

/// "; these rows fit --mlp=5,32,3", or nothing where they fit none.
std::string network_that_fits(const std::string& data) {
  try {
    const CsvShape shape = shape_of_csv(data);
    return "; these rows fit --mlp=" + std::to_string(shape.features) + ",32," +
           std::to_string(shape.classes);
  } catch (const std::runtime_error&) {
    return "";
  }
}

/// Throws UsageError where it is beyond counting.
TrainingPlan counted(const Task& task, const TrainingOptions& options, Trains trains) {
  TrainingPlan plan{.task = task, .options = options, .trains = trains != Trains::forward_passes};
  try {
    plan.flops = approximate_flops(plan);
  } catch (const std::overflow_error& error) {
    throw UsageError(task.model.name + ": " + error.what());
  }
  return plan;
}

}  // namespace

const Training::Data* Training::own_data(const Task& task) {
  if (!arguments_.data) {
    return nullptr;
  }
  const auto [at, is_new] = data_.try_emplace(task.model.name);
  if (!is_new) {
    return &at->second;
  }
  if (!task.model.reads_plain_rows()) {
    throw UsageError("--data: " + task.model.name +
                     " does not read rows of plain numbers with a class");
  }
  try {
    at->second.rows = read_csv(*arguments_.data, task.model.sample[0], task.model.classes);
    at->second.fingerprint = fingerprint(at->second.rows);
  } catch (const std::runtime_error& error) {
    throw UsageError("--data: " + std::string(error.what()) + " (" + task.model.name + " reads " +
                     std::to_string(task.model.sample[0]) + " features and " +
                     std::to_string(task.model.classes) + " classes" +
                     network_that_fits(*arguments_.data) + ")");
  }
  return &at->second;
}

/// That no flag names: the sweep's where it has some, beside or in place of the network's own.
std::vector<std::int64_t> Training::batches_for(const Task& task) const {
  const Sweep& sweep = arguments_.sweep;
  if (!arguments_.batches.empty()) {
    return arguments_.batches;
  }
  if (trains_ == Trains::forward_passes) {
    return sweep.forward_batches;
  }
  std::vector<std::int64_t> batches{task.batch};
  if (trains_ == Trains::epochs && contains(sweep.moved_models, task.model.name)) {
    batches.insert(batches.end(), sweep.further_batches.begin(), sweep.further_batches.end());
  }
  return batches;
}

std::vector<TrainingPlan> Training::plans() {
  std::vector<TrainingPlan> plans;
  const bool of_steps = trains_ != Trains::epochs;
  const std::vector<Task>& tasks = trains_ == Trains::epochs  ? arguments_.tasks
                                   : trains_ == Trains::steps ? arguments_.minibatch_tasks
                                                              : arguments_.forward_tasks;
  for (const Task& task : tasks) {
    const Data* const own = own_data(task);
    for (const std::int64_t asked : batches_for(task)) {
      const std::int64_t rows = own != nullptr ? own->rows.rows : of_steps ? asked : task.rows;
      const std::int64_t batch = std::min(asked, rows);  // two that come to the same are one row
      for (const Precision precision : arguments_.precisions) {
        TrainingOptions options{
            .rows = rows, .batch = batch, .optimizer = task.optimizer, .precision = precision};
        if (of_steps) {
          plans.push_back(counted(task, of_one_step(options, batch), trains_));
          continue;
        }
        for (const std::int64_t accumulate : arguments_.accumulate) {
          for (const bool shuffle : arguments_.choices.of(&RowSpec::shuffle)) {
            options.accumulate = accumulate;
            options.shuffle = shuffle;
            for (const std::int64_t copies : arguments_.copies) {
              options.copies = copies;
              plans.push_back(counted(task, options, trains_));
            }
          }
        }
      }
    }
  }
  return plans;
}

TrainingPlan Training::plan_of(const RowSpec& row) {
  const std::string& model = value_of(row, &RowSpec::model);
  const std::optional<Task> task = find_task(arguments_, model, trains_ == Trains::steps);
  if (!task) {
    throw std::out_of_range("this worker knows no network '" + model + "'");
  }
  const Data* const own = own_data(*task);
  TrainingOptions options{.rows = own != nullptr ? own->rows.rows : task->rows,
                          .batch = value_of(row, &RowSpec::batch),
                          .optimizer = task->optimizer,
                          .accumulate = row.accumulate,
                          .precision = options_of(row).precision,
                          .copies = row.copies,
                          .shuffle = row.shuffle,
                          .bucket_bytes = row.bucket_bytes};
  if (trains_ != Trains::epochs) {
    options.rows = options.batch;
  }
  return trained_in(counted(*task, options, trains_), row);
}

RowSpec Training::work_of(const TrainingPlan& plan) const {
  if (trains_ == Trains::forward_passes) {
    return {.family = RowFamily::forward,
            .model = plan.task.model.name,
            .batch = plan.options.batch,
            .precision = plan.options.precision};
  }
  return {.family = trains_ == Trains::steps ? RowFamily::minibatch : RowFamily::epoch,
          .model = plan.task.model.name,
          .batch = plan.options.batch,
          .precision = plan.options.precision,
          .accumulate = plan.options.accumulate,
          .copies = plan.options.copies,
          .shuffle = plan.options.shuffle,
          .loss_every_step = arguments_.loss_every_step};
}

std::vector<RowSpec> Training::rows_of(const TrainingPlan& plan, const Devices& devices) const {
  const RowSpec what = work_of(plan);
  const std::vector<int> threads = thread_counts_of(arguments_, trains_);
  const auto alone = [&](const Device& device) {
    return device.has_threads() ? cpu_modes(arguments_, plan, *device.backend)
                                : gpu_modes(arguments_, trains_, plan, *device.backend);
  };
  if (trains_ == Trains::forward_passes) {
    return on_devices(what, devices, threads,
                      [&](const Device& device) { return of_passes(alone(device)); });
  }
  const auto loaded_alone = [&](const Device& device) {
    return device.has_threads() ? loaded(arguments_, trains_, alone(device)) : alone(device);
  };
  const auto on_ranks = [&](const Device& device) {
    return device.has_threads() ? modes_on_ranks(arguments_.cpu_modes.of_training,
                                                 asks_for_execution(arguments_, AxisDevices::cpu),
                                                 executions_on_ranks(&ExecutionFacts::on_cpu))
                                : gpu_modes_on_ranks(arguments_, trains_);
  };
  std::vector<RowSpec> rows;
  for (const int ranks : arguments_.ranks) {
    if (ranks == 1) {
      const std::vector<RowSpec> of_one = on_devices(what, devices, threads, loaded_alone);
      rows.insert(rows.end(), of_one.begin(), of_one.end());
      continue;
    }
    for (const RowSpec& row : on_devices(with(what, &RowSpec::ranks, ranks), devices,
                                         threads_of_rank(threads, ranks), on_ranks)) {
      for (const std::int64_t bucket : arguments_.buckets) {
        rows.push_back(with(row, &RowSpec::bucket_bytes, bucket));
      }
    }
  }
  return rows;
}

void Training::expect(Row& row, const TrainingPlan& plan, const Target& target) const {
  ExpectedWork work{.flops = plan.flops};
  const auto rows = static_cast<double>(plan.options.rows);
  if (!target.device->has_threads()) {
    TrainingOptions one_batch = of_one_step(plan.options, plan.options.batch);
    one_batch.shuffle = false;  // the row itself will refuse
    one_batch = of_one_copy(one_batch);
    try {
      const Backend& gpu = *target.device->backend;
      TrainingPlan of_batch = plan;
      of_batch.options = one_batch;
      CompileOptions options = target.options;
      if (options.execution != Execution::persistent) {
        options.copies = plan.options.copies;
      }
      const Estimate estimate = gpu.estimate(gpu.optimize(workload_of(of_batch), options), options);
      const std::int64_t programs = plan.options.copies / estimate.copies;
      work.launches = static_cast<double>(estimate.launches * programs);
      work.multiprocessors = estimate.multiprocessors;
      if (target.options.execution != Execution::persistent) {
        work.launches *= rows / static_cast<double>(one_batch.rows);
      }
    } catch (const std::overflow_error&) {
      work.launches = 0;  // no memory holds it: the row itself will say so
    } catch (const Unsupported&) {
      work.launches = 0;  // and so will this one
    }
    if (target.options.placement != Placement::resident) {
      work.bytes_copied =
          rows * static_cast<double>(elements(plan.task.model.sample) * plan.options.copies) *
          sizeof(float);
    }
  }
  Effort effort = arguments_.sweep.effort;
  if (row.repetitions > 0) {
    effort.repetitions = row.repetitions;
  }
  if (row.min_time_seconds > 0) {
    effort.min_time_seconds = row.min_time_seconds;
  }
  const VerificationPlan verification = verification_plan(plan);
  work.flops_of_reference = verification.flops_of_operations;
  if (target.options.execution == Execution::automatic) {
    add_choice(plan, !target.device->has_threads(), work);
  }
  row.expected = expected_seconds(*row.device, target.options.threads, effort,
                                  arguments_.sweep.most_passes, work);
  row.reference = row_name(work_of(plan));
  row.reference_seconds =
      expected_reference_seconds(verification.flops_of_loss + verification.flops_of_steps);
}

// ---- What a reference can repeat of it

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

std::shared_ptr<const Backend> Training::backend_of(const TrainingPlan& plan,
                                                    const Target& target) {
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
