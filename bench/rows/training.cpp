// SPDX-License-Identifier: Apache-2.0
#include "rows/training.h"

#include <algorithm>
#include <stdexcept>

#include "command_line/networks.h"
#include "crossover/cpu_threads.h"
#include "crossover/fingerprint.h"
#include "rows/expected_seconds.h"

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
  TrainingOptions options = of_one_step(plan.options, plan.options.batch);
  options.rows *= std::min<std::int64_t>(2, options.accumulate);
  return backend.executions(training_epoch(plan.task.model, options), options.precision);
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
  return options_of(mode).execution == Execution::overlapped;
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
void add_plan(const Task& task, const TrainingOptions& options, std::vector<TrainingPlan>& plans) {
  try {
    plans.push_back(
        {.task = task, .options = options, .flops = approximate_flops(task.model, options)});
  } catch (const std::overflow_error& error) {
    throw UsageError(task.model.name + ": " + error.what());
  }
}

}  // namespace

Training::Training(Arguments arguments, Iteration iteration)
    : arguments_(std::move(arguments)), iteration_(iteration) {
  read_data();
}

void Training::read_data() {
  if (!arguments_.data) {
    return;
  }
  for (const Task& task :
       iteration_ == Iteration::step ? arguments_.minibatch_tasks : arguments_.tasks) {
    if (!task.model.reads_plain_rows()) {
      throw UsageError("--data: " + task.model.name +
                       " does not read rows of plain numbers with a class");
    }
    try {
      Data& data = data_[task.model.name];
      data.rows = read_csv(*arguments_.data, task.model.sample[0], task.model.classes);
      data.fingerprint = fingerprint(data.rows);
    } catch (const std::runtime_error& error) {
      throw UsageError("--data: " + std::string(error.what()) + " (" + task.model.name + " reads " +
                       std::to_string(task.model.sample[0]) + " features and " +
                       std::to_string(task.model.classes) + " classes" +
                       network_that_fits(*arguments_.data) + ")");
    }
  }
}

std::vector<TrainingPlan> Training::plans() const {
  std::vector<TrainingPlan> plans;
  const bool of_steps = iteration_ == Iteration::step;
  for (const Task& task : of_steps ? arguments_.minibatch_tasks : arguments_.tasks) {
    const auto own = data_.find(task.model.name);
    for (const std::int64_t asked : batches_of(arguments_, task.batch)) {
      const std::int64_t rows = own != data_.end() ? own->second.rows.rows
                                : of_steps         ? asked
                                                   : task.rows;
      const std::int64_t batch = std::min(asked, rows);  // two that come to the same are one row
      for (const Precision precision : arguments_.precisions) {
        TrainingOptions options{
            .rows = rows, .batch = batch, .optimizer = task.optimizer, .precision = precision};
        if (of_steps) {
          add_plan(task, of_one_step(options, batch), plans);
          continue;
        }
        for (const std::int64_t accumulate : arguments_.accumulate) {
          for (const std::string& shuffle : arguments_.choices.of("shuffle")) {
            options.accumulate = accumulate;
            options.shuffle = shuffle == "epoch";
            add_plan(task, options, plans);
          }
        }
      }
    }
  }
  return plans;
}

Configuration Training::configuration(const TrainingPlan& plan) const {
  return {{"family", iteration_ == Iteration::step ? "Minibatch" : "Epoch"},
          {"model", plan.task.model.name},
          {"batch", std::to_string(plan.options.batch)},
          {"precision", to_string(plan.options.precision)},
          {"accumulate", std::to_string(plan.options.accumulate)},
          {"shuffle", plan.options.shuffle ? "epoch" : "none"},
          {"loss", arguments_.choices.of("loss").front()}};
}

std::vector<Target> Training::targets(const TrainingPlan& plan, Devices& devices) const {
  const Configuration common{{"precision", to_string(plan.options.precision)},
                             {"loss", arguments_.choices.of("loss").front()}};
  const auto gpus = devices.gpus();
  std::vector<Target> all;
  for (const int ranks : arguments_.ranks) {
    std::vector<Target> some =
        ranks == 1
            ? targets_of(devices, common, threads(),
                         loaded(cpu_modes(plan, *devices.cpu().backend)),
                         gpus.empty() ? std::vector<Configuration>{}
                                      : gpu_modes(plan, *gpus.front().backend))
            : targets_on_ranks(devices, common, ranks, threads_of_rank(ranks), arguments_.buckets,
                               modes_on_ranks(arguments_.cpu_modes.of_training,
                                              asks_for_cpu_execution(), {"eager", "overlapped"}),
                               gpu_modes_on_ranks());
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  for (Target& target : all) {
    target.joined = devices.ranks;
    if (target.ranks > 1 && arguments_.mixed) {
      target.warnings.emplace_back(ranks_are_mixed);
    }
  }
  return all;
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
  if (iteration_ == Iteration::step) {
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
  std::vector<Configuration> modes = arguments_.gpu_modes.of_training;
  std::erase_if(modes, [](const Configuration& mode) { return is_of_ranks(mode); });
  const bool asked_for =
      arguments_.choices.has_on(find_axis("execution"), AxisDevices::gpu, /*training=*/true);
  if (!asked_for) {
    Possible is_possible(gpu, plan);
    std::erase_if(modes, [&](const Configuration& mode) { return !is_possible(mode); });
  }
  if (iteration_ == Iteration::step) {
    // A graph, or a kernel, is that of the step. A large step hides how its batch is copied, so
    // that the best and no copy do, unless others are asked for.
    const bool every_placement =
        arguments_.sweep.every_minibatch_placement || arguments_.choices.has("data");
    std::erase_if(modes, [&](const Configuration& mode) {
      const CompileOptions options = options_of(mode);
      return options.execution == Execution::graph_epoch ||
             options.execution == Execution::persistent ||
             (!every_placement &&
              (options.placement == Placement::pageable || options.placement == Placement::pinned));
    });
  }
  return modes;
}

/// A part of an epoch is no graph of its own in rows of single steps.
std::vector<Configuration> Training::gpu_modes_on_ranks() const {
  std::vector<std::string> every{"eager", "overlapped", "graph"};
  if (iteration_ == Iteration::epoch) {
    every.emplace_back("graph-epoch");
  }
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
  return thread_counts(arguments_, iteration_ == Iteration::epoch
                                       ? arguments_.sweep.threads
                                       : arguments_.sweep.minibatch_threads);
}

void Training::expect(Row& row, const TrainingPlan& plan, const Target& target) const {
  ExpectedWork work{.flops = plan.flops};
  const auto rows = static_cast<double>(plan.options.rows);
  if (!target.device->is_host) {
    TrainingOptions one_batch = of_one_step(plan.options, plan.options.batch);
    one_batch.shuffle = false;  // the row itself will refuse
    try {
      const Backend& gpu = *target.device->backend;
      const Estimate estimate = gpu.estimate(
          gpu.optimize(training_epoch(plan.task.model, one_batch), target.options), target.options);
      work.launches = static_cast<double>(estimate.launches);
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
          rows * static_cast<double>(elements(plan.task.model.sample)) * sizeof(float);
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
