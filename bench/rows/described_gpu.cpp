// SPDX-License-Identifier: Apache-2.0
#include "rows/described_gpu.h"

#include <array>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace crossover::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array precisions{Precision::f32, Precision::tf32, Precision::bf16, Precision::f16};

class DescribedGpu : public Backend {
 public:
  DescribedGpu(Description description, std::map<Precision, std::string> missing)
      : description_(std::move(description)), missing_(std::move(missing)) {}

  [[nodiscard]] Description describe() const override { return description_; }
  [[nodiscard]] std::string missing_for(Precision precision) const override {
    const auto at = missing_.find(precision);
    return at == missing_.end() ? "" : at->second;
  }
  [[nodiscard]] Workload optimize(Workload workload,
                                  const CompileOptions& /*options*/) const override {
    return workload;
  }
  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& /*workload*/,
                                           const CompileOptions& /*options*/) const override {
    throw Unsupported("this GPU is described, not here");
  }
  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& /*spec*/) const override {
    throw Unsupported("this GPU is described, not here");
  }

 private:
  Description description_;
  std::map<Precision, std::string> missing_;
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

Device planned_gpu() {
  constexpr std::int64_t cache_bytes = 60 << 20;
  return {
      .backend = std::make_unique<DescribedGpu>(Description{.device = "cuda",
                                                            .cache_bytes = cache_bytes,
                                                            .memory_bytes = std::int64_t{80} << 30,
                                                            .libraries = {{"gpu", "planned"}}},
                                                std::map<Precision, std::string>{}),
      .cache_bytes = cache_bytes};
}

}  // namespace crossover::bench
