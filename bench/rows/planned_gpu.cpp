// SPDX-License-Identifier: Apache-2.0
#include "rows/planned_gpu.h"

#include <memory>
#include <string>
#include <utility>

namespace crossover::bench {
namespace {

class PlannedGpu : public Backend {
 public:
  [[nodiscard]] Description describe() const override {
    return {.device = "cuda",
            .cache_bytes = 60 << 20,
            .memory_bytes = std::int64_t{80} << 30,
            .libraries = {{"gpu", "planned"}}};
  }
  [[nodiscard]] std::string missing_for(Precision /*precision*/) const override { return ""; }
  [[nodiscard]] Workload optimize(Workload workload,
                                  const CompileOptions& /*options*/) const override {
    return workload;
  }
  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& /*workload*/,
                                           const CompileOptions& /*options*/) const override {
    throw Unsupported("this GPU is planned, not here");
  }
  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& /*spec*/) const override {
    throw Unsupported("this GPU is planned, not here");
  }
};

}  // namespace

Device planned_gpu() {
  auto backend = std::make_unique<PlannedGpu>();
  const std::int64_t cache_bytes = backend->describe().cache_bytes;
  return {.backend = std::move(backend), .cache_bytes = cache_bytes};
}

}  // namespace crossover::bench
