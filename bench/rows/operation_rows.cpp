// SPDX-License-Identifier: Apache-2.0
#include "rows/operation_rows.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "crossover/alive.h"
#include "crossover/cpu_threads.h"
#include "crossover/random.h"
#include "rows/device.h"
#include "rows/work.h"

namespace crossover::bench {
std::vector<Configuration> operation_rows(const Arguments& arguments, const Devices& devices,
                                          const Configuration& what, const Cost& operation) {
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
  return on_devices(what, devices, threads, arguments.cpu_modes.of_operations,
                    arguments.gpu_modes.of_operations);
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
  if (row.device->is_host && work.flops > long_flops * std::sqrt(std::max(1, threads))) {
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
  const std::int64_t own = target.device->is_host ? plan->bytes() : 0;  // a GPU tells of its own
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

// ---- Rows that time a probe

namespace {

class PreparedProbe : public PreparedBenchmark {
 public:
  explicit PreparedProbe(std::unique_ptr<Probe> probe) : probe_(std::move(probe)) {}

  void run() override { probe_->run(); }
  void check() override { probe_->check(); }
  [[nodiscard]] Probe& probe() { return *probe_; }

 private:
  std::unique_ptr<Probe> probe_;
};

/// The median of up to 21 runs within 0.2 s, by the device's clock; 0 where it has none.
double median_device_seconds(Probe& probe) {
  constexpr std::size_t most = 21;
  constexpr std::chrono::duration<double> enough(0.2);
  std::vector<double> seconds;
  const auto start = std::chrono::steady_clock::now();
  do {
    seconds.push_back(probe.device_seconds());
  } while (seconds.back() > 0 && seconds.size() < most &&
           std::chrono::steady_clock::now() - start < enough);
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

/// On the host; a device's own memory tells by itself whether it is enough.
double host_bytes(const ProbeSpec& spec, bool device_is_host) {
  const ProbeMemory needed = memory_needed(spec);
  return static_cast<double>(needed.host + (device_is_host ? needed.device : 0));
}

int threads_of(const ProbeSpec& spec) {
  return std::visit(
      [](const auto& probe) {
        if constexpr (requires { probe.threads; }) {
          return probe.threads;
        } else {
          return 1;
        }
      },
      spec);
}

/// All results are compared after each loop: of a copy one of two blocks, else one of three arrays.
ExpectedWork expected_work(const ProbeSpec& spec, const Device& device) {
  const Work counted = work(spec);
  const ProbeMemory memory = memory_needed(spec);
  const auto held = static_cast<double>(std::max(memory.host, memory.device));
  const bool is_copy = std::holds_alternative<CopyProbe>(spec);
  ExpectedWork work{.flops = counted.flops,
                    .launches = static_cast<double>(counted.pieces),
                    .bytes_checked = held / (is_copy ? 2 : 3),
                    .bytes_prepared = is_copy || device.is_host ? held : 0};
  if (is_copy || device.is_host) {
    work.bytes_copied = counted.bytes;
  }
  return work;
}

}  // namespace

ProbeSpec probe_of(const Configuration& row, const std::vector<ProbeRow>& all,
                   const std::string& what) {
  const auto at = std::ranges::find(all, in_order(row), &ProbeRow::row);
  if (at == all.end()) {
    throw std::out_of_range("this worker has no such " + what);
  }
  return at->probe;
}

bool is_modest(const Arguments& arguments, const ProbeSpec& spec) {
  return host_bytes(spec, true) <= static_cast<double>(planned_memory_bytes(arguments)) / 4;
}

Row probe_row(const Arguments& arguments, Device& device, Configuration configuration,
              const ProbeSpec& spec) {
  Row row{.configuration = std::move(configuration), .device = &device};
  set_effort(row, arguments, expected_work(spec, device), threads_of(spec));
  return row;
}

std::unique_ptr<PreparedBenchmark> make_probe_row(const Arguments& arguments, const Device& device,
                                                  const ProbeSpec& spec,
                                                  const std::optional<MinimumWork>& minimum_work,
                                                  Result& result) {
  require_memory(arguments, host_bytes(spec, device.is_host), "for what is measured");
  auto made = std::make_unique<PreparedProbe>(device.backend->make_probe(spec));
  made->run();
  verify_or_note(result, [&] { made->check(); });
  const Work counted = work(spec);
  if (counted.flops > 0 || counted.bytes > 0) {
    result.verification.reference = "every result, bit for bit, here and behind each sample";
  }
  result.minimum_work = minimum_work;
  const auto count = static_cast<double>(counted.pieces);
  result.counters["count"] = count;
  if (counted.bytes > 0) {
    result.counters["bytes"] = counted.bytes;
  } else if (counted.flops > 0) {
    result.counters["flops"] = counted.flops;
  }
  if (result.not_verified) {
    return made;
  }
  if (const double seconds = median_device_seconds(made->probe()); seconds > 0) {
    result.counters["device_seconds"] = seconds / count;
    made->check();
  }
  return made;
}

}  // namespace crossover::bench
