// SPDX-License-Identifier: Apache-2.0
#include "families/work.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "crossover/cost.h"
#include "crossover/training.h"
#include "rows/watches.h"
#include "run/estimates.h"

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
  if (!device.has_threads()) {  // a CPU's calls cost too little, and too unlike each other
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

}  // namespace crossover::bench
