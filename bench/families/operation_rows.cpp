// SPDX-License-Identifier: Apache-2.0
#include "families/operation_rows.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "crossover/alive.h"
#include "crossover/machine.h"
#include "crossover/random.h"
#include "families/device.h"
#include "families/work.h"

namespace crossover::bench {

std::vector<RowSpec> operation_rows(const Arguments& arguments, const Devices& devices,
                                    const RowSpec& what, const Cost& operation) {
  std::vector<int> threads = arguments.threads;
  if (threads.empty()) {
    threads = {1};
    if (usable_cores() > 1 && operation.flops >= flops_worth_threads) {
      threads.push_back(usable_cores());
    }
  }
  if (!arguments.sweep.small_operations_on_threads && operation.flops < flops_worth_threads) {
    threads.resize(1);
  }
  return on_devices(what, devices, threads, [&](const Device& device) {
    return arguments.modes_of(device.axes()).of_operations;
  });
}

std::int64_t repeats(const Cost& operation) {
  constexpr double flops_of_an_iteration = 1e9;
  constexpr double most = 100;
  return static_cast<std::int64_t>(std::clamp(flops_of_an_iteration / operation.flops, 1.0, most));
}

void set_effort(Row& row, const Arguments& arguments, const ExpectedWork& work, int threads) {
  constexpr double long_flops = 2e10;  // of a thread: a row of the largest sizes would take minutes
  constexpr int few = 3;
  Effort chosen = arguments.sweep.operation_effort;
  if (row.device->has_threads() && work.flops > long_flops * std::sqrt(std::max(1, threads))) {
    chosen.repetitions = std::min(chosen.repetitions, few);
  }
  if (arguments.repetitions) {
    chosen.repetitions = arguments.sweep.effort.repetitions;
  } else {
    row.repetitions = chosen.repetitions;
  }
  if (arguments.min_time_seconds) {
    chosen.min_time_seconds = arguments.sweep.effort.min_time_seconds;
  } else {
    row.min_time_seconds = chosen.min_time_seconds;
  }
  row.expected = expected_seconds(*row.device, threads, chosen, arguments.sweep.most_passes, work);
}

std::vector<double> operand_values(std::int64_t count, std::int64_t salt) {
  constexpr std::uint64_t apart = 0x9E3779B1;  // more than any operand has elements
  std::vector<double> values(static_cast<std::size_t>(count));
  for_each_index(count, [&](std::int64_t at) {
    const auto i = static_cast<std::size_t>(at);
    values[i] = 2 * uniform(Stream::inputs, i + apart * static_cast<std::uint64_t>(salt)) - 1;
  });
  return values;
}

PreparedOperation::PreparedOperation(Workload workload, const Target& target,
                                     const Arguments& arguments, double more_bytes,
                                     const std::string& purpose)
    : workload_(std::move(workload)) {
  const std::unique_ptr<Plan> plan = target.device->backend->plan(workload_, target.options);
  const std::int64_t own = target.device->has_own_memory() ? 0 : plan->bytes();
  require_memory(arguments, static_cast<double>(own) + more_bytes, purpose);
  program_ = plan->instantiate();
}

void PreparedOperation::count(const Cost& operation, const Target& target, Result& result) const {
  const auto times = static_cast<double>(workload_.order.size());
  Cost iteration;
  iteration.flops = times * operation.flops;
  result.minimum_work =
      minimum_work_of(workload_, iteration, *program_, target.options, *target.device);
  result.counters = target.counters;
  result.counters["flops"] = operation.flops;
  result.counters["bytes"] = operation.bytes;
  result.counters["launches"] = static_cast<double>(program_->facts().launches) / times;
  result.counters["count"] = times;
  result.verification.take(program_->facts().arithmetic, target.options.precision);
  result.counters["verified_entries"] = static_cast<double>(result.verification.compared);
}

}  // namespace crossover::bench
