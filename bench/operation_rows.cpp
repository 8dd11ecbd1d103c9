// SPDX-License-Identifier: Apache-2.0
#include "operation_rows.h"

#include <algorithm>
#include <cmath>

#include "crossover/random.h"
#include "minimum_work.h"

namespace crossover::bench {
namespace {

/// How long and how often a row of one operation is measured, by sweep.
struct Effort {
  int repetitions;
  double min_time_seconds;
};

Effort effort(const std::string& sweep) {
  if (sweep == "quick") {
    return {.repetitions = 3, .min_time_seconds = 0.01};
  }
  if (sweep == "full") {
    return {.repetitions = 9, .min_time_seconds = 0.2};
  }
  return {.repetitions = 5, .min_time_seconds = 0.05};
}

bool is_given(const Arguments& arguments, const std::string& flag) {
  return std::any_of(arguments.passed_on.begin(), arguments.passed_on.end(),
                     [&](const std::string& word) { return word.starts_with(flag + "="); });
}

/// What the CPU backend gives one thread only: src/cpu/backend.cpp.
bool worth_threads(const Cost& operation) {
  constexpr double flops = 1e6;
  return operation.flops >= flops;
}

}  // namespace

std::vector<Target> operation_targets(const Arguments& arguments, Devices& devices,
                                      Precision precision, const Cost& operation) {
  std::vector<int> threads = arguments.threads;
  if (threads.empty()) {
    threads = {1};
    if (usable_cores() > 1 && worth_threads(operation)) {
      threads.push_back(usable_cores());
    }
  }
  return targets_of(devices, {{"precision", to_string(precision)}}, threads,
                    arguments.operation_modes);
}

std::int64_t repeats(const Cost& operation) {
  constexpr double flops_of_an_iteration = 1e9;
  constexpr double most = 100;
  return static_cast<std::int64_t>(std::clamp(flops_of_an_iteration / operation.flops, 1.0, most));
}

void set_effort(Row& row, const Arguments& arguments, double iteration_flops, int threads) {
  constexpr double flops_per_second = 2e10;
  constexpr double long_seconds = 1;  // a row of the largest sizes would take minutes
  constexpr int few = 3;
  const double seconds = iteration_flops / (flops_per_second * std::sqrt(std::max(1, threads)));
  Effort chosen = effort(arguments.sweep.name);
  if (seconds > long_seconds) {
    chosen.repetitions = std::min(chosen.repetitions, few);
  }
  row.expected_seconds =
      (chosen.repetitions + 1) * std::max(1.2 * chosen.min_time_seconds, seconds);
  if (!is_given(arguments, "--benchmark_repetitions")) {
    row.repetitions = chosen.repetitions;
  }
  if (!is_given(arguments, "--benchmark_min_time")) {
    row.min_time_seconds = chosen.min_time_seconds;
  }
}

std::vector<double> operand_values(std::int64_t count, std::int64_t salt) {
  constexpr std::uint64_t apart = 0x9E3779B1;  // more than any operand has elements
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 2 * uniform(Stream::inputs, i + apart * static_cast<std::uint64_t>(salt)) - 1;
  }
  return values;
}

PreparedOperation::PreparedOperation(Workload workload, const Target& target)
    : workload_(std::move(workload)),
      program_(target.device->backend->compile(workload_, target.options)) {}

void PreparedOperation::count(const Cost& operation, const Target& target, Result& result) const {
  const auto times = static_cast<double>(workload_.order.size());
  Cost iteration;
  iteration.flops = times * operation.flops;
  result.minimum_work =
      minimum_work_of(workload_, iteration, *program_, target.options, *target.device);
  result.counters = target.counters;
  result.counters["flops"] = operation.flops;
  result.counters["bytes"] = operation.bytes;
  result.counters["launches"] = static_cast<double>(program_->launches()) / times;
  result.counters["count"] = times;
  result.counters["verified_entries"] = static_cast<double>(result.verification.compared);
}

void derive_operation(benchmark::UserCounters& counters, double seconds) {
  const double of_one = seconds / counters["count"].value;
  counters["seconds"] = of_one;
  counters["flops_per_second"] = counters["flops"].value / of_one;
  counters["bytes_per_second"] = counters["bytes"].value / of_one;
}

}  // namespace crossover::bench
