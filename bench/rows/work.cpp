// SPDX-License-Identifier: Apache-2.0
#include "rows/work.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "command_line/networks.h"
#include "crossover/backends.h"
#include "crossover/cost.h"
#include "crossover/executions.h"
#include "crossover/product.h"
#include "crossover/training.h"
#include "rows/counters.h"
#include "rows/device.h"

namespace crossover::bench {

// ---- At least

std::int64_t input_bytes(const Workload& workload, const Step& step) {
  std::int64_t sum = 0;
  for (const Id id : views_of(workload, step)) {
    sum += bytes(workload[id]);
  }
  return sum;
}

MinimumWork minimum_work_of(const Workload& workload, const Cost& counted, const Program& program,
                            const CompileOptions& options, const Device& device) {
  MinimumWork least{.flops = counted.flops};
  if (options.precision == Precision::f32) {
    least.flops -= counted.avoidable_flops;
  }
  std::vector<double> memory;
  std::vector<double> copied;
  for (const Step& step : workload.steps) {
    const std::int64_t beyond_cache = footprint_bytes(workload, step) - device.cache_bytes;
    memory.push_back(static_cast<double>(std::max<std::int64_t>(0, beyond_cache)));
    copied.push_back(options.placement == Placement::resident
                         ? 0
                         : static_cast<double>(input_bytes(workload, step)));
  }
  for (const Run& run : workload.order) {
    least.memory_bytes += memory[static_cast<std::size_t>(run.step)];
    least.bytes_to_device += copied[static_cast<std::size_t>(run.step)];
  }
  if (options.loss_every_step && device.has_own_memory()) {
    least.bytes_from_device = static_cast<double>(workload.order.size() * sizeof(float));
  }
  if (!device.has_threads()) {  // a CPU's calls cost too little, and too unlike each other, for a
                                // ceiling
    least.launches = static_cast<double>(program.facts().launches);
    least.graph =
        options.execution == Execution::graph || options.execution == Execution::graph_epoch;
  }
  return least;
}

// ---- Seconds

namespace {

/// Rates that a device reaches at least where it has enough to do, and what each start costs.
struct Rates {
  double flops_per_second;
  double bytes_per_second;
  double seconds_per_launch;
  double seconds_per_iteration;
};

constexpr Rates rates_of_thread{.flops_per_second = expected_flops_of_a_thread_per_second,
                                .bytes_per_second = 1e10,
                                .seconds_per_launch = 1e-6,
                                .seconds_per_iteration = 1e-6};
constexpr Rates rates_of_gpu{.flops_per_second = 5e12,
                             .bytes_per_second = 5e9,
                             .seconds_per_launch = 5e-6,
                             .seconds_per_iteration = 2e-5};

constexpr double flops_per_second_of_multiprocessor = 1e11;

double iteration_seconds(const Rates& rates, double speed, const ExpectedWork& work) {
  const double flops_per_second = work.multiprocessors > 0
                                      ? work.multiprocessors * flops_per_second_of_multiprocessor
                                      : rates.flops_per_second * speed;
  return rates.seconds_per_iteration + work.launches * rates.seconds_per_launch +
         work.flops / flops_per_second + work.bytes_copied / rates.bytes_per_second;
}

/// Google Benchmark looks for a number of iterations, each time up to ten times the last, before
/// the first repetition.
int trials(double iteration, double min_time_seconds) {
  constexpr double most = 8;
  const double needed = std::max(1.0, min_time_seconds / iteration);
  return static_cast<int>(std::min(most, std::ceil(std::log10(needed))));
}

}  // namespace

double expected_reference_seconds(double flops) { return flops / reference_flops_per_second; }

int instances_of(int repetitions, double seconds, double making_seconds, int most) {
  constexpr double share = 1.0 / 4;
  constexpr int fewest = 3;
  const double paid = share * seconds / std::max(making_seconds, 1e-9);
  const int worth = 1 + static_cast<int>(std::min(paid, 1.0 * repetitions));
  return std::clamp(std::max(fewest, worth), 1, std::max(1, std::min(repetitions, most)));
}

ExpectedSeconds expected_seconds(const Device& device, int threads, const Effort& effort,
                                 int most_instances, const ExpectedWork& work) {
  const auto& [repetitions, min_time_seconds] = effort;
  const bool on_gpu = !device.has_threads();
  const Rates& rates = on_gpu ? rates_of_gpu : rates_of_thread;
  const double speed = on_gpu ? 1 : std::sqrt(std::max(1, threads));
  const double iteration = iteration_seconds(rates, speed, work);

  constexpr double overshoot = 1.4;  // Google Benchmark's, beyond the least time
  constexpr double of_trials = 0.3;  // all but the last are short
  constexpr double profiled = 1.2;   // of a network's repetitions
  const double compiled_and_kept = on_gpu ? 0.2 : 0.05;  // with its place in the result file
  constexpr double bytes_checked_per_second = 3e9;
  constexpr double bytes_prepared_per_second = 1e9;
  const double loop = std::max(overshoot * min_time_seconds, iteration);
  const int tried = trials(iteration, min_time_seconds);
  const double around_a_loop = (on_gpu ? std::max(warm_up_seconds, iteration) : 0) +
                               work.bytes_checked / bytes_checked_per_second;
  const double making = compiled_and_kept + (on_gpu ? first_warm_up_seconds : 0) + 2 * iteration +
                        work.bytes_prepared / bytes_prepared_per_second;
  const double once = making + expected_reference_seconds(work.flops_of_reference) +
                      work.seconds_of_choice + work.iterations_of_choice * iteration +
                      (tried > 0 ? of_trials * profiled * loop : 0) + tried * around_a_loop;
  const double repetition = profiled * loop + around_a_loop;
  const double all = once + repetitions * repetition;
  const int instances = instances_of(repetitions, all, making, most_instances);
  return {.all = all + (instances - 1) * making, .repetition = repetition};
}

// ---- A network

namespace {

using Json = nlohmann::ordered_json;

bool counts_a_pass(const Arguments& arguments) {
  return arguments.families == std::vector{RowFamily::forward};
}

Json operation_json(const Workload& workload, const Op& op) {
  const Cost counted = cost(workload, op);
  Json json = {{"kind", to_string(category(op))},
               {"operation", name(op)},
               {"flops", counted.flops},
               {"bytes", counted.bytes},
               {"launches", counted.launches}};
  for (const OpProduct& product : products_of(workload, op)) {
    const ProductSize& size = product.size;
    json["products"].push_back(
        {{"pass", product.pass}, {"m", size.m}, {"n", size.n}, {"k", size.k}});
  }
  return json;
}

Json step_json(const Workload& epoch) {
  const Step& step = epoch.steps[static_cast<std::size_t>(epoch.order.front().step)];
  const Cost counted = cost(epoch, step);
  Json json = {{"flops", counted.flops},
               {"bytes", counted.bytes},
               {"launches", counted.launches},
               {"bytes_to_device", input_bytes(epoch, step)},
               {"footprint_bytes", footprint_bytes(epoch, step)},
               {"operations", Json::array()}};
  for (const Op& op : step.ops) {
    json["operations"].push_back(operation_json(epoch, op));
  }
  return json;
}

/// Whether one process runs Workloads in that mode, which comes to no other.
bool is_counted(const RowSpec& mode, const Arguments& arguments) {
  const Execution execution = options_of(mode).execution;
  return makes_sense(mode, arguments.loss_every_step) && execution != Execution::automatic &&
         !facts_of(execution).on_ranks_alone && (!counts_a_pass(arguments) || is_of_passes(mode));
}

/// By execution and placement.
Json gpu_launches(const Backend& gpu, const Workload& epoch, const Arguments& arguments) {
  Json json = Json::object();
  for (const RowSpec& mode : every_gpu_mode()) {
    if (!is_counted(mode, arguments)) {
      continue;
    }
    CompileOptions options = options_of(mode);
    options.precision = arguments.precisions.front();
    options.loss_every_step = arguments.loss_every_step;
    try {
      json[text_of(mode, &RowSpec::execution)][text_of(mode, &RowSpec::placement)] =
          gpu.estimate(gpu.optimize(epoch, options), options).launches;
    } catch (const Unsupported&) {
      if (options.execution != Execution::persistent) {  // which takes few networks
        throw;
      }
    }
  }
  return json;
}

/// By device what `count` says of its backend; one that lacks an operation or the precision says
/// nothing.
Json by_device(const std::function<Json(const BackendKind& kind, const Backend& planned)>& count) {
  Json json = Json::object();
  for (const BackendKind& kind : backends()) {
    try {
      json[kind.name] = count(kind, *kind.describe(""));
    } catch (const Unsupported&) {
      // nothing is left to say
    }
  }
  return json;
}

/// On a GPU by execution and placement too: what a row's counter of that name says.
Json device_launches(const Workload& epoch, const Arguments& arguments) {
  return by_device([&](const BackendKind& kind, const Backend& planned) {
    return kind.has_threads ? Json(planned.estimate(planned.optimize(epoch), {}).launches)
                            : gpu_launches(planned, epoch, arguments);
  });
}

/// What training takes of each device's memory with all rows there, eagerly.
Json device_bytes(const Workload& epoch, const Arguments& arguments) {
  const CompileOptions options{.precision = arguments.precisions.front()};
  return by_device([&](const BackendKind& kind, const Backend& planned) -> Json {
    const Workload own = planned.optimize(epoch, options);
    if (!kind.has_own_memory) {
      return {{"bytes", planned.plan(own, options)->bytes()}};
    }
    const Estimate asked = planned.estimate(own, options);
    return {{"bytes", asked.bytes}, {"workspace_bytes", asked.workspace_bytes}};
  });
}

Json epoch_json(const Workload& epoch, const Arguments& arguments) {
  const Cost counted = cost(epoch);
  double to_device = 0;
  for (const Run& run : epoch.order) {
    to_device +=
        static_cast<double>(input_bytes(epoch, epoch.steps[static_cast<std::size_t>(run.step)]));
  }
  return {
      {"flops", counted.flops},           {"bytes", counted.bytes},
      {"products", product_count(epoch)}, {"launches", counted.launches},
      {"bytes_to_device", to_device},     {"device_launches", device_launches(epoch, arguments)}};
}

void require_one_network(const Arguments& arguments) {
  const auto require = [](bool condition, const std::string& what) {
    if (!condition) {
      throw UsageError("--cost counts one network: " + what);
    }
  };
  require(!arguments.data, "give the number of rows with --rows=N instead of --data");
  require(arguments.tasks.size() == 1,
          "name it with --mlp=IN,...,CLASSES, --network=FILE.json or --model=NAME");
  require(arguments.batches.size() <= 1, "give one batch size with --batch=N");
  require(arguments.precisions.size() == 1, "give one --precision");
  require(arguments.accumulate.size() == 1, "give one --accumulate");
  require(arguments.copies == std::vector<std::int64_t>{1}, "leave out --copies");
}

}  // namespace

Json cost_json(const Arguments& arguments) {
  require_one_network(arguments);
  const Task& task = arguments.tasks.front();
  const bool is_pass = counts_a_pass(arguments);
  const std::int64_t batch = batches_of(arguments, task.batch).front();
  const TrainingOptions training{.rows = is_pass ? batch : task.rows,
                                 .batch = is_pass ? batch : std::min(batch, task.rows),
                                 .optimizer = task.optimizer,
                                 .accumulate = arguments.accumulate.front(),
                                 .precision = arguments.precisions.front()};
  try {
    // The order of the epoch, in three arrangements.
    bench::require_memory(arguments,
                          3.0 * static_cast<double>(training.rows) /
                              static_cast<double>(training.batch) * sizeof(Run),
                          "to count the steps of an epoch of " + task.model.name);
    const Workload epoch = is_pass ? forward_pass(task.model, training.batch, training.precision)
                                   : training_epoch(task.model, training);
    Json json = {{"model", task.model.name},
                 {"params", parameter_count(epoch)},
                 {"batch", training.batch},
                 {"rows", training.rows},
                 {"steps", epoch.order.size()},
                 {"logits", training.rows * logits_of_a_sample(task.model)},
                 {"precision", to_string(training.precision)},
                 {"accumulate", training.accumulate}};
    json["epoch"] = epoch_json(epoch, arguments);
    if (is_pass) {
      json["epoch"]["bytes_from_device"] = bytes(epoch[find(epoch, "outputs")]);
    } else {
      json["optimizer"] = optimizer_label(training.optimizer);
    }
    json["step"] = step_json(epoch);
    json["device_bytes"] = device_bytes(epoch, arguments);
    return json;
  } catch (const std::overflow_error& error) {
    throw UsageError("--cost: " + task.model.name + ": " + error.what());
  } catch (const OutOfMemory& error) {
    throw UsageError(std::string("--cost: ") + error.what());
  }
}

}  // namespace crossover::bench
