// SPDX-License-Identifier: Apache-2.0
#include "rows/described_gpu.h"

#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace crossover::bench {
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

}  // namespace crossover::bench
