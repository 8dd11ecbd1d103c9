// SPDX-License-Identifier: Apache-2.0
#include "families/device.h"

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "crossover/backend_over.h"
#include "crossover/machine.h"
#include "crossover/memory.h"
#include "crossover/ranks.h"
#include "rows/devices.h"
#include "rows/watches.h"

namespace crossover::bench {

namespace {

/// All caches of the last level together.
std::int64_t cpu_cache_bytes() {
  const benchmark::CPUInfo& cpu = benchmark::CPUInfo::Get();
  std::int64_t bytes = 0;
  int level = 0;
  for (const auto& cache : cpu.caches) {
    if (cache.level > level && cache.num_sharing > 0) {
      level = cache.level;
      const int copies = std::max(1, cpu.num_cpus / cache.num_sharing);
      bytes = static_cast<std::int64_t>(cache.size) * copies;
    }
  }
  return bytes;
}

/// What has no memory of its own reads the host's through the host's caches.
Device device_with(const BackendKind& kind, std::unique_ptr<Backend> backend) {
  const Description description = backend->describe();
  return {.kind = &kind,
          .description = description,
          .cache_bytes = kind.has_own_memory ? description.cache_bytes : cpu_cache_bytes(),
          .state = [&of = *backend] { return of.state(); },
          .backend = std::move(backend)};
}

const Machine& machine() {
  static const Machine all = this_machine();
  return all;
}

bool is_bound_by_launcher() {
  return launched_ranks() > 1 && machine().threads < sysconf(_SC_NPROCESSORS_ONLN);
}

}  // namespace

Devices find_devices(const DeviceUses& uses, Ranks* ranks) {
  Devices devices;
  devices.ranks = ranks;
  for (const BackendKind& kind : backends()) {
    if (use_of(uses, kind) == DeviceUse::off) {
      devices.missing[kind.name] = "none (--" + kind.name + "=off)";
      continue;
    }
    FoundBackend found;
    try {
      found = kind.make(ranks);
    } catch (const Unsupported& error) {
      devices.all.push_back(device_with(kind, kind.describe(error.what())));
      continue;
    }
    if (!found.backend) {
      devices.missing[kind.name] = found.reason;
      continue;
    }
    Device& device = devices.all.emplace_back(device_with(kind, std::move(found.backend)));
    if (kind.has_own_memory) {
      device.facts = gpu_json(device.description, device.state());
    }
  }
  return devices;
}

Device planned_device(const BackendKind& kind) {
  return device_with(kind, kind.describe("this " + kind.word + " is planned, not here"));
}

std::vector<int> thread_counts(const Arguments& arguments, ThreadCounts which) {
  if (!arguments.threads.empty()) {
    return arguments.threads;
  }
  std::vector<int> threads;
  if (which != ThreadCounts::most) {
    const int factor = which == ThreadCounts::powers ? 2 : usable_cores();
    for (int t = 1; t < usable_cores(); t *= factor) {
      threads.push_back(t);
    }
  }
  threads.push_back(usable_cores());
  return threads;
}

std::vector<std::string> doubts_about_gpus() {
  const char* shared = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  if (shared == nullptr || std::string(shared) != "1") {
    return {};
  }
  return {
      "ranks may share a GPU (NCCL_MULTI_RANK_GPU_ENABLE=1): that tests them, and says nothing "
      "of the speed of several"};
}

std::vector<std::string> doubts_about_threads(int threads, int ranks, int loader) {
  std::vector<std::string> doubts;
  const ThreadSettings settings = thread_settings();
  if (settings.binding != "false" && settings.processors > 0 && threads > settings.processors) {
    doubts.push_back(std::to_string(threads) + " threads are bound to " +
                     std::to_string(settings.processors) +
                     (settings.processors == 1 ? " processor" : " processors") +
                     " (OMP_PLACES, GOMP_CPU_AFFINITY or their like)");
  }
  if (const auto quota = machine().quota; quota && threads * ranks + loader > *quota) {
    std::ostringstream doubt;
    doubt << "throttled: a quota of the container gives its " << threads * ranks + loader
          << " threads the time of " << *quota << (*quota == 1 ? " processor" : " processors");
    doubts.push_back(doubt.str());
  }
  if (threads > 1 && settings.wait_policy == "passive") {
    doubts.emplace_back(
        "threads that sleep at once (OMP_WAIT_POLICY=passive or its like) slow down rows with "
        "several");
  }
  if (is_bound_by_launcher()) {  // each rank has cores of its own
    if (threads > usable_cores()) {
      doubts.push_back("oversubscribed: the launcher bound this rank of " +
                       std::to_string(threads) + " threads to " + std::to_string(usable_cores()) +
                       (usable_cores() == 1 ? " core" : " cores") + " (mpirun --bind-to none)");
    }
  } else if (threads * ranks + loader > machine().cores) {
    const std::string of_ranks = ranks > 1 ? std::to_string(ranks) + " ranks of " : "";
    const std::string of_loader =
        loader > 0 ? " and " + std::to_string(loader) + " that load batches" : "";
    doubts.push_back("oversubscribed: " + of_ranks + std::to_string(threads) + " threads" +
                     of_loader + " on " + std::to_string(machine().cores) + " cores");
  }
  return doubts;
}

// ---- Described devices

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array precisions{Precision::f32, Precision::tf32, Precision::bf16, Precision::f16};

/// Plans as any of its kind; says what the worker said.
class DescribedBackend : public BackendOver {
 public:
  DescribedBackend(std::unique_ptr<Backend> planned, Description description,
                   std::map<Precision, std::string> missing)
      : BackendOver(*planned),
        planned_(std::move(planned)),
        description_(std::move(description)),
        missing_(std::move(missing)) {}

  [[nodiscard]] Description describe() const override { return description_; }
  [[nodiscard]] std::string missing_for(Precision precision) const override {
    return missing_.at(precision);
  }
  [[nodiscard]] Estimate estimate(const Workload& workload,
                                  const CompileOptions& options) const override {
    return planned_->estimate(workload, options);
  }
  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& workload,
                                           const CompileOptions& options) const override {
    return planned_->plan(workload, options);
  }

 private:
  std::unique_ptr<Backend> planned_;
  Description description_;
  std::map<Precision, std::string> missing_;
};

Json description_json(const Device& device) {
  const Description description = device.backend->describe();
  Json json = {{"cache_bytes", device.cache_bytes},
               {"memory_bytes", description.memory_bytes},
               {"multiprocessors", description.multiprocessors},
               {"libraries", description.libraries},
               {"missing", Json::object()},
               {"facts", device.facts}};
  for (const Precision precision : precisions) {
    if (const std::string why = device.backend->missing_for(precision); !why.empty()) {
      json["missing"][to_string(precision)] = why;
    }
  }
  return json;
}

Device described_device(const BackendKind& kind, const Json& json) {
  std::map<Precision, std::string> missing;
  for (const Precision precision : precisions) {
    missing[precision] = json.at("missing").value(to_string(precision), "");
  }
  Device device = device_with(kind, std::make_unique<DescribedBackend>(
                                        planned_device(kind).backend,
                                        Description{.cache_bytes = json.at("cache_bytes"),
                                                    .memory_bytes = json.at("memory_bytes"),
                                                    .multiprocessors = json.at("multiprocessors"),
                                                    .libraries = json.at("libraries")},
                                        std::move(missing)));
  device.cache_bytes = json.at("cache_bytes");
  device.facts = json.at("facts");
  return device;
}

}  // namespace

Json description_json(const Devices& devices) {
  Json json = {{"devices", Json::object()}, {"missing", devices.missing}};
  for (const Device& device : devices.all) {
    if (&device != &devices.all.front()) {
      json["devices"][device.name()] = description_json(device);
    }
  }
  return json;
}

Devices described_devices(const Json& description) {
  Devices devices;
  devices.all.push_back(planned_device(backends().front()));
  devices.missing = description.at("missing");
  for (const auto& [name, json] : description.at("devices").items()) {
    devices.all.push_back(described_device(backend_named(name), json));
  }
  return devices;
}

// ---- Target

Device& device_of(const RowSpec& row, Devices& devices) {
  Device* const device = devices.find(row.device.value_or(""));
  if (device == nullptr) {
    throw std::out_of_range("this worker has no device '" + value_of(row, &RowSpec::device) + "'");
  }
  return *device;
}

Target target_of(const RowSpec& row, Devices& devices) {
  Target target{.device = &device_of(row, devices),
                .ranks = row.ranks,
                .loader = row.loader,
                .bucket_bytes = row.bucket_bytes,
                .joined = devices.ranks,
                .options = options_of(row),
                .row = row};
  if (target.device->has_threads()) {
    target.warnings = doubts_about_threads(target.options.threads, target.ranks, target.loader);
    target.counters["cpu_threads"] = target.options.threads;
  } else if (target.ranks > 1) {
    target.warnings = doubts_about_gpus();
  }
  if (target.ranks > 1) {
    target.counters["ranks"] = target.ranks;
  }
  return target;
}

Row row_on(const Target& target) {
  return {.spec = target.row, .device = target.device, .warnings = target.warnings};
}

std::vector<RowSpec> on_devices(const RowSpec& what, const Devices& devices,
                                const std::vector<int>& threads, const ModesOf& modes_of) {
  std::vector<RowSpec> rows;
  for (const Device& device : devices.all) {
    const std::vector<RowSpec> modes = modes_of(device);
    const auto add_modes = [&](std::optional<int> count) {
      for (const RowSpec& mode : modes) {
        rows.push_back(overlaid(what, mode));
        rows.back().device = device.name();
        rows.back().threads = count ? count : rows.back().threads;
      }
    };
    if (device.has_threads()) {
      std::ranges::for_each(threads, add_modes);
    } else {
      add_modes(std::nullopt);
    }
  }
  return rows;
}

// ---- Memory

namespace {

/// "2048 bytes", "3.25 MiB", "512 MiB".
std::string amount(double bytes) {
  constexpr double mebibyte_bytes = 1024.0 * 1024;
  std::ostringstream text;
  if (bytes < mebibyte_bytes) {
    text.precision(0);
    text << std::fixed << bytes << " bytes";
  } else {
    text.precision(bytes < 10 * mebibyte_bytes ? 2 : 0);
    text << std::fixed << bytes / mebibyte_bytes << " MiB";
  }
  return text.str();
}

}  // namespace

void require_memory(const Arguments& arguments, double bytes, const std::string& purpose) {
  const auto available =
      static_cast<double>(arguments.memory_limit_bytes.value_or(available_memory_bytes()));
  if (bytes > available) {
    throw OutOfMemory("not enough memory: " + amount(bytes) + " needed " + purpose + ", " +
                      amount(available) + " available");
  }
}

/// What the kernel keeps of it for itself differs a little from start to start: a power of two does
/// not.
std::int64_t planned_memory_bytes(const Arguments& arguments) {
  const auto total = static_cast<std::uint64_t>(std::max<std::int64_t>(1, total_memory_bytes()));
  return arguments.planned_memory_bytes.value_or(static_cast<std::int64_t>(std::bit_floor(total)));
}

}  // namespace crossover::bench
