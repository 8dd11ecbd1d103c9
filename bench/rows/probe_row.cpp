// SPDX-License-Identifier: Apache-2.0
#include "rows/probe_row.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "rows/device.h"
#include "rows/operation_rows.h"

namespace crossover::bench {
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
