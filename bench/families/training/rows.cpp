// SPDX-License-Identifier: Apache-2.0
// The rows of a network: in which ways each device runs it, and how long that may take.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "crossover/cost.h"
#include "crossover/executions.h"
#include "families/families.h"
#include "families/training/references.h"
#include "families/work.h"

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
std::vector<RowSpec> loaded(const Arguments& arguments, const std::vector<RowSpec>& modes) {
  std::vector<RowSpec> all;
  for (const RowSpec& mode : modes) {
    for (const int workers : arguments.choices.of(&RowSpec::loader)) {
      all.push_back(with(mode, &RowSpec::loader, workers));
    }
  }
  return all;
}

/// Of the sweep's executions few networks have a persistent one; rows that were asked for say why.
std::vector<RowSpec> gpu_modes(const Arguments& arguments, const TrainingPlan& plan,
                               const Backend& gpu) {
  std::vector<RowSpec> modes = plan.trains == Trains::forward_passes
                                   ? arguments.forward_gpu_modes
                                   : arguments.gpu_modes.of_training;
  std::erase_if(modes, [](const RowSpec& mode) { return is_of_ranks(mode); });
  if (!asks_for_execution(arguments, AxisDevices::gpu)) {
    auto is_possible = possible_on(gpu, plan);
    std::erase_if(modes, [&](const RowSpec& mode) { return !is_possible(mode); });
  }
  if (plan.trains == Trains::steps) {
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

/// A large batch of a large network in use says what its training says, and takes minutes to
/// verify: only who asks for the batch gets it.
constexpr double most_seconds_unasked = 20;

/// On the CPU each number of threads, on a GPU each of the command line's modes.
std::vector<RowSpec> training_rows(const TrainingPlan& plan, const Arguments& arguments,
                                   const Devices& devices) {
  const RowSpec what = work_of(plan);
  const Sweep& sweep = arguments.sweep;
  const std::vector<int> threads = thread_counts(
      arguments, plan.trains == Trains::epochs ? sweep.threads : sweep.minibatch_threads);
  const auto alone = [&](const Device& device) {
    return device.has_threads() ? cpu_modes(arguments, plan, *device.backend)
                                : gpu_modes(arguments, plan, *device.backend);
  };
  if (plan.trains == Trains::forward_passes) {
    return on_devices(what, devices, threads,
                      [&](const Device& device) { return of_passes(alone(device)); });
  }
  const auto loaded_alone = [&](const Device& device) {
    const bool loads = plan.trains == Trains::epochs && device.has_threads();
    return loads ? loaded(arguments, alone(device)) : alone(device);
  };
  const auto on_ranks = [&](const Device& device) {
    return device.has_threads() ? modes_on_ranks(arguments.cpu_modes.of_training,
                                                 asks_for_execution(arguments, AxisDevices::cpu),
                                                 executions_on_ranks(&ExecutionFacts::on_cpu))
                                : gpu_modes_on_ranks(arguments, plan.trains);
  };
  std::vector<RowSpec> rows;
  for (const int ranks : arguments.ranks) {
    if (ranks == 1) {
      const std::vector<RowSpec> of_one = on_devices(what, devices, threads, loaded_alone);
      rows.insert(rows.end(), of_one.begin(), of_one.end());
      continue;
    }
    for (const RowSpec& row : on_devices(with(what, &RowSpec::ranks, ranks), devices,
                                         threads_of_rank(threads, ranks), on_ranks)) {
      for (const std::int64_t bucket : arguments.buckets) {
        rows.push_back(with(row, &RowSpec::bucket_bytes, bucket));
      }
    }
  }
  return rows;
}

/// A guess at a row's seconds, and what it shares with other rows of the network. The row has its
/// repetitions and its least time, or the sweep's.
void expect(Row& row, const TrainingPlan& plan, const Target& target, const Sweep& sweep) {
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
      if (!facts_of(options.execution).in_one_kernel) {
        options.copies = plan.options.copies;
      }
      const Estimate estimate = gpu.estimate(gpu.optimize(workload_of(of_batch), options), options);
      const std::int64_t programs = plan.options.copies / estimate.copies;
      work.launches = static_cast<double>(estimate.launches * programs);
      work.multiprocessors = estimate.multiprocessors;
      if (!facts_of(target.options.execution).in_one_kernel) {
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
  Effort effort = sweep.effort;
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
  row.expected =
      expected_seconds(*row.device, target.options.threads, effort, sweep.most_passes, work);
  row.reference = row_name(work_of(plan));
  row.reference_seconds =
      expected_reference_seconds(verification.flops_of_loss + verification.flops_of_steps);
}

/// Each network on each target.
void register_networks(const Arguments& arguments, Trains trains, Devices& devices, Rows& rows) {
  References references(arguments.data);
  for (const TrainingPlan& plan : training_plans(arguments, trains, references)) {
    for (const RowSpec& spec : training_rows(plan, arguments, devices)) {
      const Target target = target_of(spec, devices);
      Row row = row_on(target);
      if (target.ranks > 1 && arguments.mixed) {
        row.warnings.emplace_back(ranks_are_mixed);
      }
      if (!arguments.repetitions) {
        row.repetitions = arguments.sweep.repetitions_of(trains);
      }
      expect(row, plan, target, arguments.sweep);
      if (trains != Trains::forward_passes || !arguments.batches.empty() ||
          row.expected.all <= most_seconds_unasked) {
        rows.add(std::move(row));
      }
    }
  }
}

}  // namespace

/// Other precisions are shown in the way that is fast.
bool is_epoch_worth_minutes(const Row& row, int /*most_threads*/) {
  return is_in_f32(row) || row.device->has_threads() ||
         (row.spec.execution == Execution::graph && row.spec.placement == Placement::resident &&
          row.spec.products == ProductChoice::heuristic);
}

void register_epochs(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_networks(arguments, Trains::epochs, devices, rows);
}

/// Of large steps, how they are launched, and where their data lies, says little. Each is verified
/// for seconds.
bool is_minibatch_worth_minutes(const Row& row, int most_threads) {
  if (row.device->has_threads()) {
    return is_in_f32(row) && row.spec.threads == most_threads;
  }
  const std::optional<Execution> execution = row.spec.execution;
  return (execution == Execution::graph || (execution == Execution::automatic && is_in_f32(row))) &&
         row.spec.placement == Placement::resident && row.spec.products == ProductChoice::heuristic;
}

void register_minibatches(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_networks(arguments, Trains::steps, devices, rows);
}

void register_passes(const Arguments& arguments, Devices& devices, Rows& rows) {
  register_networks(arguments, Trains::forward_passes, devices, rows);
}

}  // namespace crossover::bench
