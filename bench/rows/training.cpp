// SPDX-License-Identifier: Apache-2.0
#include "rows/training.h"

#include <algorithm>
#include <stdexcept>

#include "command_line/networks.h"
#include "crossover/cpu_threads.h"
#include "crossover/executions.h"
#include "crossover/fingerprint.h"
#include "rows/device.h"
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

/// Which of the modes the device can run the network in; asks it once for each way to train.
class Possible {
 public:
  Possible(const Backend& backend, const TrainingPlan& plan) : backend_(backend), plan_(plan) {}

  bool operator()(const Configuration& mode) {
    const TrainingPlan plan = trained_in(plan_, mode);
    const auto [at, is_new] = executions_.try_emplace(plan.options.zero_gradients);
    if (is_new) {
      at->second = executions_on(backend_, plan);
    }
    const std::vector<Execution>& all = at->second;
    return std::find(all.begin(), all.end(), options_of(mode).execution) != all.end();
  }

 private:
  const Backend& backend_;
  const TrainingPlan& plan_;
  std::map<bool, std::vector<Execution>> executions_;
};

Configuration with(const std::string& key, const std::string& value, Configuration mode) {
  std::erase_if(mode, [&](const auto& pair) { return pair.first == key; });
  return joined({{key, value}}, mode);
}

void add_new(const Configuration& mode, std::vector<Configuration>& to) {
  if (std::find(to.begin(), to.end(), mode) == to.end()) {
    to.push_back(mode);
  }
}

/// With an execution that only ranks have.
bool is_of_ranks(const Configuration& mode) {
  return facts_of(options_of(mode).execution).on_ranks_alone;
}

/// `on`: the device.
std::vector<std::string> executions_on_ranks(bool ExecutionFacts::*on, bool of_whole_order = true) {
  std::vector<std::string> names;
  for (const ExecutionFacts& one : execution_table) {
    if (one.on_ranks && one.*on && (of_whole_order || !one.of_whole_order)) {
      names.emplace_back(one.name);
    }
  }
  return names;
}

/// Of the modes that were asked for those that several ranks can run; all that they can, `every`
/// one, where `modes` are the sweep's, or none of them is one.
std::vector<Configuration> modes_on_ranks(const std::vector<Configuration>& modes,
                                          bool are_asked_for,
                                          const std::vector<std::string>& every) {
  std::vector<Configuration> possible;
  std::copy_if(modes.begin(), modes.end(), std::back_inserter(possible),
               [&](const Configuration& mode) {
                 const std::string& own = value_of(mode, "execution");
                 return are_asked_for && std::find(every.begin(), every.end(), own) != every.end();
               });
  if (!possible.empty()) {
    return possible;
  }
  for (const Configuration& mode : modes) {
    for (const std::string& execution : every) {
      add_new(with("execution", execution, mode), possible);
    }
  }
  return possible;
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

std::vector<TrainingPlan> Training::plans() {
  std::vector<TrainingPlan> plans;
  const bool of_steps = !is_of_epochs();
  for (const Task& task : tasks()) {
    const Data* const own = own_data(task);
    for (const std::int64_t asked : batches(task)) {
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
          for (const std::string& shuffle : arguments_.choices.of("shuffle")) {
            options.accumulate = accumulate;
            options.shuffle = shuffle == "epoch";
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

const std::vector<Task>& Training::tasks() const {
  return trains_ == Trains::epochs  ? arguments_.tasks
         : trains_ == Trains::steps ? arguments_.minibatch_tasks
                                    : arguments_.forward_tasks;
}

std::vector<std::int64_t> Training::batches(const Task& task) const {
  return trains_ == Trains::forward_passes && arguments_.batches.empty()
             ? arguments_.sweep.forward_batches
             : batches_of(arguments_, task.batch);
}

TrainingPlan Training::plan_of(const Configuration& row) {
  const std::string& model = value_of(row, "model");
  const std::optional<Task> task = find_task(arguments_, model, trains_ == Trains::steps);
  if (!task) {
    throw std::out_of_range("this worker knows no network '" + model + "'");
  }
  const Data* const own = own_data(*task);
  TrainingOptions options{.rows = own != nullptr ? own->rows.rows : task->rows,
                          .batch = number_of(row, "batch"),
                          .optimizer = task->optimizer,
                          .accumulate = number_of(row, "accumulate"),
                          .precision = options_of(row).precision,
                          .copies = number_of(row, "copies"),
                          .shuffle = value_or_unsaid(row, "shuffle") == "epoch",
                          .bucket_bytes = number_of(row, "bucket")};
  if (!is_of_epochs()) {
    options.rows = options.batch;
  }
  return trained_in(counted(*task, options, trains_), row);
}

Configuration Training::configuration(const TrainingPlan& plan) const {
  if (trains_ == Trains::forward_passes) {
    return {{"family", "Forward"},
            {"model", plan.task.model.name},
            {"batch", std::to_string(plan.options.batch)},
            {"precision", to_string(plan.options.precision)}};
  }
  return {{"family", trains_ == Trains::steps ? "Minibatch" : "Epoch"},
          {"model", plan.task.model.name},
          {"batch", std::to_string(plan.options.batch)},
          {"precision", to_string(plan.options.precision)},
          {"accumulate", std::to_string(plan.options.accumulate)},
          {"copies", std::to_string(plan.options.copies)},
          {"shuffle", plan.options.shuffle ? "epoch" : "none"},
          {"loss", arguments_.choices.of("loss").front()}};
}

std::vector<Configuration> Training::rows_of(const TrainingPlan& plan,
                                             const Devices& devices) const {
  const Configuration what = configuration(plan);
  const auto gpus = devices.gpus();
  std::vector<Configuration> rows;
  for (const int ranks : arguments_.ranks) {
    if (trains_ == Trains::forward_passes) {
      return on_devices(what, devices, threads(),
                        of_passes(cpu_modes(plan, *devices.all.front().backend)),
                        gpus.empty() ? std::vector<Configuration>{}
                                     : of_passes(gpu_modes(plan, *gpus.front().backend)));
    }
    if (ranks == 1) {
      const std::vector<Configuration> alone = on_devices(
          what, devices, threads(), loaded(cpu_modes(plan, *devices.all.front().backend)),
          gpus.empty() ? std::vector<Configuration>{} : gpu_modes(plan, *gpus.front().backend));
      rows.insert(rows.end(), alone.begin(), alone.end());
      continue;
    }
    for (const Configuration& row : on_devices(
             joined(what, {{"ranks", std::to_string(ranks)}}), devices, threads_of_rank(ranks),
             modes_on_ranks(arguments_.cpu_modes.of_training, asks_for_cpu_execution(),
                            executions_on_ranks(&ExecutionFacts::on_cpu)),
             gpu_modes_on_ranks())) {
      for (const std::int64_t bucket : arguments_.buckets) {
        rows.push_back(joined(row, {{"bucket", std::to_string(bucket)}}));
      }
    }
  }
  return rows;
}

/// Of those of one process as many as leave a core to each thread, or the fewest.
std::vector<int> Training::threads_of_rank(int ranks) const {
  std::vector<int> counts = threads();
  const int fewest = *std::min_element(counts.begin(), counts.end());
  std::erase_if(counts,
                [&](int count) { return count > fewest && count * ranks > usable_cores(); });
  return counts;
}

bool Training::asks_for_cpu_execution() const {
  return arguments_.choices.has_on(find_axis("execution"), AxisDevices::cpu, /*training=*/true);
}

/// Of the sweep's executions a network has those that the CPU can run it with, and eager for the
/// others; those that were asked for become rows that say so.
std::vector<Configuration> Training::cpu_modes(const TrainingPlan& plan, const Backend& cpu) const {
  std::vector<Configuration> modes = arguments_.cpu_modes.of_training;
  std::erase_if(modes, [](const Configuration& mode) { return is_of_ranks(mode); });
  if (asks_for_cpu_execution()) {
    return modes;
  }
  Possible is_possible(cpu, plan);
  std::vector<Configuration> possible;
  for (const Configuration& mode : modes) {
    add_new(is_possible(mode) ? mode : with("execution", "eager", mode), possible);
  }
  return possible;
}

/// Each with each number of threads that load batches; a step alone has its batch.
std::vector<Configuration> Training::loaded(const std::vector<Configuration>& modes) const {
  if (trains_ == Trains::steps) {
    return modes;
  }
  std::vector<Configuration> all;
  for (const Configuration& mode : modes) {
    for (const std::string& workers : arguments_.choices.of("loader")) {
      all.push_back(joined(mode, {{"loader", workers}}));
    }
  }
  return all;
}

/// Of the sweep's executions few networks have a persistent one; rows that were asked for say why.
std::vector<Configuration> Training::gpu_modes(const TrainingPlan& plan, const Backend& gpu) const {
  std::vector<Configuration> modes = trains_ == Trains::forward_passes
                                         ? arguments_.forward_gpu_modes
                                         : arguments_.gpu_modes.of_training;
  std::erase_if(modes, [](const Configuration& mode) { return is_of_ranks(mode); });
  const bool asked_for =
      arguments_.choices.has_on(find_axis("execution"), AxisDevices::gpu, /*training=*/true);
  if (!asked_for) {
    Possible is_possible(gpu, plan);
    std::erase_if(modes, [&](const Configuration& mode) { return !is_possible(mode); });
  }
  if (trains_ == Trains::steps) {
    // A graph, or a kernel, is that of the step. A large step hides how its batch is copied, so
    // that the best and no copy do, unless others are asked for.
    const bool every_placement =
        arguments_.sweep.every_minibatch_placement || arguments_.choices.has("data");
    std::erase_if(modes, [&](const Configuration& mode) {
      const CompileOptions options = options_of(mode);
      return facts_of(options.execution).of_whole_order ||
             (!every_placement &&
              (options.placement == Placement::pageable || options.placement == Placement::pinned));
    });
  }
  return modes;
}

/// A pass by itself is a graph of its own, and no pass before it computes while its batch is
/// copied. How gradients are kept says nothing of it.
std::vector<Configuration> Training::of_passes(const std::vector<Configuration>& modes) {
  std::vector<Configuration> all;
  for (Configuration mode : modes) {
    const CompileOptions options = options_of(mode);
    if (!facts_of(options.execution).of_whole_order &&
        options.placement != Placement::pinned_async) {
      std::erase_if(mode, [](const auto& pair) { return pair.first == "zero"; });
      add_new(mode, all);
    }
  }
  return all;
}

/// A part of an epoch is no graph of its own in rows of single steps.
std::vector<Configuration> Training::gpu_modes_on_ranks() const {
  const std::vector<std::string> every =
      executions_on_ranks(&ExecutionFacts::on_gpu, trains_ == Trains::epochs);
  const bool asked_for =
      arguments_.choices.has("data") ||
      arguments_.choices.has_on(find_axis("execution"), AxisDevices::gpu, /*training=*/true);
  std::vector<Configuration> modes = arguments_.gpu_modes.of_training;
  for (Configuration& mode : modes) {
    mode = asked_for ? mode : with("data", "resident", mode);
    if (!arguments_.choices.has("products")) {
      std::erase_if(mode, [](const auto& pair) { return pair.first == "products"; });
    }
  }
  return modes_on_ranks(modes, asked_for, every);
}

std::vector<int> Training::threads() const {
  return thread_counts(arguments_, trains_ == Trains::epochs ? arguments_.sweep.threads
                                                             : arguments_.sweep.minibatch_threads);
}

void Training::expect(Row& row, const TrainingPlan& plan, const Target& target) const {
  ExpectedWork work{.flops = plan.flops};
  const auto rows = static_cast<double>(plan.options.rows);
  if (!target.device->is_host) {
    TrainingOptions one_batch = of_one_step(plan.options, plan.options.batch);
    one_batch.shuffle = false;  // the row itself will refuse
    one_batch = of_one_copy(one_batch);
    try {
      const Backend& gpu = *target.device->backend;
      TrainingPlan of_batch = plan;
      of_batch.options = one_batch;
      const Estimate estimate =
          gpu.estimate(gpu.optimize(workload_of(of_batch), target.options), target.options);
      work.launches = static_cast<double>(estimate.launches * plan.options.copies);
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
    add_choice(plan, !target.device->is_host, work);
  }
  row.expected = expected_seconds(*row.device, target.options.threads, effort,
                                  arguments_.sweep.most_passes, work);
  row.reference = row_name(configuration(plan));
  row.reference_seconds =
      expected_reference_seconds(verification.flops_of_loss + verification.flops_of_steps);
}

}  // namespace crossover::bench
