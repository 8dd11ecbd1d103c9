// SPDX-License-Identifier: Apache-2.0
#include "rows/device.h"

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

#include "crossover/machine.h"
#include "crossover/memory.h"
#include "crossover/ranks.h"
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

Device planned(std::unique_ptr<Backend> backend) {
  const std::int64_t cache_bytes = backend->describe().cache_bytes;
  return {.backend = std::move(backend), .cache_bytes = cache_bytes};
}

const Machine& machine() {
  static const Machine all = this_machine();
  return all;
}

bool is_bound_by_launcher() {
  return launched_ranks() > 1 && machine().threads < sysconf(_SC_NPROCESSORS_ONLN);
}

}  // namespace

Devices find_devices(CudaUse use, Ranks* ranks) {
  Devices devices;
  devices.ranks = ranks;
  devices.all.push_back(
      {.backend = make_cpu_backend(), .is_host = true, .cache_bytes = cpu_cache_bytes()});
  if (use == CudaUse::off) {
    devices.gpu_reason = "none (--cuda=off)";
    return devices;
  }
  CudaBackend cuda;
  try {
    cuda = ranks == nullptr ? make_cuda_backend() : make_cuda_backend(*ranks);
  } catch (const Unsupported& error) {
    devices.all.push_back(planned(make_planned_gpu(error.what())));
    return devices;
  }
  if (cuda.backend) {
    const std::int64_t cache_bytes = cuda.backend->describe().cache_bytes;
    nlohmann::ordered_json facts = gpu_json(*cuda.backend);
    devices.all.push_back({.backend = std::move(cuda.backend),
                           .cache_bytes = cache_bytes,
                           .facts = std::move(facts)});
  } else if (use == CudaUse::on) {
    throw UsageError("--cuda=on, but there is no GPU: " + cuda.reason);
  }
  devices.gpu_reason = cuda.reason;
  return devices;
}

Device planned_gpu() { return planned(make_planned_gpu()); }

int usable_cores() {
  const double quota = machine().quota.value_or(machine().cores);
  return std::clamp(static_cast<int>(quota), 1, machine().cores);
}

int usable_processors() { return machine().threads; }

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

// ---- described gpu

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array precisions{Precision::f32, Precision::tf32, Precision::bf16, Precision::f16};

/// Plans as any GPU; says what the worker said.
class DescribedGpu : public Backend {
 public:
  DescribedGpu(Description description, std::map<Precision, std::string> missing)
      : description_(std::move(description)), missing_(std::move(missing)) {}

  [[nodiscard]] Description describe() const override { return description_; }
  [[nodiscard]] std::string missing_for(Precision precision) const override {
    return missing_.at(precision);
  }
  [[nodiscard]] Workload optimize(Workload workload, const CompileOptions& options) const override {
    return planned_->optimize(std::move(workload), options);
  }
  [[nodiscard]] std::vector<Execution> executions(const Workload& workload,
                                                  Precision precision) const override {
    return planned_->executions(workload, precision);
  }
  [[nodiscard]] Estimate estimate(const Workload& workload,
                                  const CompileOptions& options) const override {
    return planned_->estimate(workload, options);
  }
  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& workload,
                                           const CompileOptions& options) const override {
    return planned_->plan(workload, options);
  }
  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override {
    return planned_->make_probe(spec);
  }

 private:
  Description description_;
  std::map<Precision, std::string> missing_;
  std::unique_ptr<Backend> planned_ = make_planned_gpu();
};

}  // namespace

Json description_json(const Devices& devices) {
  Json json = {{"gpu", nullptr}, {"gpu_reason", devices.gpu_reason}};
  if (devices.gpus().empty()) {
    return json;
  }
  const Device& gpu = devices.gpus().front();
  const Description description = gpu.backend->describe();
  json["gpu"] = {{"device", description.device},
                 {"cache_bytes", description.cache_bytes},
                 {"memory_bytes", description.memory_bytes},
                 {"multiprocessors", description.multiprocessors},
                 {"libraries", description.libraries},
                 {"missing", Json::object()},
                 {"facts", gpu.facts}};
  for (const Precision precision : precisions) {
    if (const std::string why = gpu.backend->missing_for(precision); !why.empty()) {
      json["gpu"]["missing"][to_string(precision)] = why;
    }
  }
  return json;
}

Devices described_devices(const Json& description) {
  Devices devices = find_devices(CudaUse::off);
  devices.gpu_reason = description.at("gpu_reason");
  const Json& gpu = description.at("gpu");
  if (gpu.is_null()) {
    return devices;
  }
  std::map<Precision, std::string> missing;
  for (const Precision precision : precisions) {
    missing[precision] = gpu.at("missing").value(to_string(precision), "");
  }
  const std::int64_t cache_bytes = gpu.at("cache_bytes");
  devices.all.push_back({.backend = std::make_unique<DescribedGpu>(
                             Description{.device = gpu.at("device"),
                                         .cache_bytes = cache_bytes,
                                         .memory_bytes = gpu.at("memory_bytes"),
                                         .multiprocessors = gpu.at("multiprocessors"),
                                         .libraries = gpu.at("libraries")},
                             std::move(missing)),
                         .cache_bytes = cache_bytes,
                         .facts = gpu.at("facts")});
  return devices;
}

// ---- Target

Device* find_device(const RowSpec& row, Devices& devices) {
  const auto at = std::ranges::find(devices.all, row.device, &Device::name);
  return at == devices.all.end() ? nullptr : &*at;
}

Device& device_of(const RowSpec& row, Devices& devices) {
  Device* const device = find_device(row, devices);
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
  if (target.device->is_host) {
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

std::vector<RowSpec> on_devices(const RowSpec& what, const Devices& devices,
                                const std::vector<int>& threads,
                                const std::vector<RowSpec>& cpu_modes,
                                const std::vector<RowSpec>& gpu_modes) {
  std::vector<RowSpec> rows;
  const auto add = [&](const Device& device, const RowSpec& mode) {
    rows.push_back(overlaid(what, mode));
    rows.back().device = device.name();
  };
  for (const int count : threads) {
    for (const RowSpec& mode : cpu_modes) {
      add(devices.all.front(), mode);
      rows.back().threads = count;
    }
  }
  for (const Device& gpu : devices.gpus()) {
    for (const RowSpec& mode : gpu_modes) {
      add(gpu, mode);
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
