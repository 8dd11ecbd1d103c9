// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: the first GPU, what it has, and what can be made for it.
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "crossover/backend.h"
#include "crossover/training.h"
#include "execution/graphs.h"
#include "plan.h"
#include "probes.h"
#include "product.h"
#include "program.h"
#include "runtime.h"

namespace crossover {
namespace cuda {
namespace {

std::string text(const char* characters) { return characters; }

class GpuPlan : public Plan {
 public:
  /// The library answers here which products it has: instantiate() finds nothing to decide but, by
  /// timing, between algorithms.
  GpuPlan(Workload workload, const CompileOptions& options, const Device& device)
      : workload_(std::move(workload)),
        choice_(options.products),
        device_(device),
        products_(std::make_unique<ProductLibrary>(
            options.precision, workspace_for_products,
            choice_ == ProductChoice::autotuned ? most_candidates : 1)),
        plan_(make_plan(workload_, options,
                        [this](const ProductForm& form) { return products_->supports(form); })),
        launches_(count_launches(workload_, plan_)) {
    check_order_graph(workload_, plan_);
  }

  [[nodiscard]] std::int64_t bytes() const override { return plan_.bytes; }

  [[nodiscard]] std::int64_t launches() const override { return launches_; }

  [[nodiscard]] std::unique_ptr<Program> instantiate() override {
    if (!products_) {
      throw std::logic_error("a Plan is instantiated once");
    }
    device_.use();
    return std::make_unique<CudaProgram>(std::move(workload_), std::move(plan_),
                                         std::move(products_), choice_);
  }

 private:
  static constexpr int most_candidates = 8;  ///< that are timed for each form of product

  Workload workload_;
  ProductChoice choice_;
  Device device_;
  std::unique_ptr<ProductLibrary> products_;
  LaunchPlan plan_;
  std::int64_t launches_;
};

class GpuBackend : public Backend {
 public:
  explicit GpuBackend(const Device& device) : device_(device) {}

  [[nodiscard]] Description describe() const override {
    int driver = 0;
    int runtime = 0;
    CROSSOVER_CUDA_CHECK(cudaDriverGetVersion(&driver));
    CROSSOVER_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    const cudaDeviceProp& gpu = device_.properties;
    return {.device = "cuda",
            .cache_bytes = gpu.l2CacheSize,
            .libraries = {
                {"gpu", text(static_cast<const char*>(gpu.name))},
                {"compute_capability", std::to_string(gpu.major) + "." + std::to_string(gpu.minor)},
                {"cuda_driver", version_text(driver)},
                {"cuda_runtime", version_text(runtime)},
                {"cublaslt", std::to_string(cublasLtGetVersion())}}};
  }

  [[nodiscard]] std::string missing_for(Precision precision) const override {
    return missing_for_products(device_.properties, precision);
  }

  /// Not fuse_update(): a product that accumulates loses cuBLASLt's bias-gradient epilogue.
  [[nodiscard]] Workload optimize(Workload workload) const override {
    return fuse(std::move(workload));
  }

  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& workload,
                                           const CompileOptions& options) const override {
    check(workload, options.precision);
    if (const std::string missing = missing_for(options.precision); !missing.empty()) {
      throw Unsupported(missing);
    }
    device_.use();
    return std::make_unique<GpuPlan>(workload, options, device_);
  }

  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override {
    device_.use();
    return cuda::make_probe(spec, device_.properties);
  }

 private:
  Device device_;
};

}  // namespace
}  // namespace cuda

CudaBackend make_cuda_backend() {
  constexpr int first = 0;
  const cuda::Discovery found = cuda::discover(first);
  if (!found.reason.empty()) {
    return {.reason = found.reason};
  }
  return {.backend = std::make_unique<cuda::GpuBackend>(found.device)};
}

}  // namespace crossover
