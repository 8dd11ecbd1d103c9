// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: the first GPU, what it has, and what can be made for it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "crossover/backend.h"
#include "crossover/launches.h"
#include "crossover/training.h"
#include "nvml.h"
#include "plan.h"
#include "probes.h"
#include "product.h"
#include "program.h"
#include "runtime.h"

namespace crossover {
namespace cuda {
namespace {

std::string text(const char* characters) { return characters; }

/// "0000:c1:00.0": NVML counts GPUs in another order than CUDA.
std::string pci_bus_id(const cudaDeviceProp& device) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.0", device.pciDomainID, device.pciBusID,
                device.pciDeviceID);
  return text.data();
}

class GpuPlan : public crossover::Plan {
 public:
  GpuPlan(Workload workload, const CompileOptions& options)
      : workload_(std::move(workload)), options_(options) {}

  /// With every mask that cuBLASLt may write, or what own kernels need in its place: it is not
  /// asked here which epilogues it has.
  [[nodiscard]] std::int64_t bytes() const override {
    const auto all = [](const ProductForm&) { return true; };
    const auto plain = [](const ProductForm& form) { return form.epilogue == Epilogue::none; };
    return std::max(make_plan(workload_, options_, all).bytes,
                    make_plan(workload_, options_, plain).bytes);
  }

  [[nodiscard]] std::int64_t launches() const override {
    return cuda_launches(workload_, options_);
  }

  [[nodiscard]] std::unique_ptr<Program> instantiate() override {
    return std::make_unique<CudaProgram>(workload_, options_);
  }

 private:
  const Workload workload_;
  const CompileOptions options_;
};

class GpuBackend : public Backend {
 public:
  explicit GpuBackend(const Discovery& found)
      : device_(found.device),
        start_seconds_(found.start_seconds),
        nvml_(pci_bus_id(device_)),
        facts_(nvml_.facts()) {}

  [[nodiscard]] Description describe() const override {
    int driver = 0;
    int runtime = 0;
    CROSSOVER_CUDA_CHECK(cudaDriverGetVersion(&driver));
    CROSSOVER_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    return {.device = "cuda",
            .cache_bytes = device_.l2CacheSize,
            .memory_bytes = static_cast<std::int64_t>(device_.totalGlobalMem),
            .multiprocessors = device_.multiProcessorCount,
            .start_seconds = start_seconds_,
            .gpu = facts_,
            .libraries = {{"gpu", text(static_cast<const char*>(device_.name))},
                          {"compute_capability",
                           std::to_string(device_.major) + "." + std::to_string(device_.minor)},
                          {"cuda_driver", version_text(driver)},
                          {"cuda_runtime", version_text(runtime)},
                          {"cublaslt", std::to_string(cublasLtGetVersion())}}};
  }

  [[nodiscard]] GpuState state() const override { return nvml_.state(); }

  [[nodiscard]] std::string missing_for(Precision precision) const override {
    return missing_for_products(device_, precision);
  }

  /// Not fuse_update(): a product that accumulates loses cuBLASLt's bias-gradient epilogue.
  [[nodiscard]] Workload optimize(Workload workload) const override {
    return fuse(std::move(workload));
  }

  [[nodiscard]] std::unique_ptr<crossover::Plan> plan(
      const Workload& workload, const CompileOptions& options) const override {
    check(workload, options.precision);
    if (const std::string missing = missing_for(options.precision); !missing.empty()) {
      throw Unsupported(missing);
    }
    return std::make_unique<GpuPlan>(workload, options);
  }

  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override {
    return cuda::make_probe(spec, device_);
  }

 private:
  cudaDeviceProp device_;
  double start_seconds_;
  Nvml nvml_;
  GpuFacts facts_;
};

}  // namespace
}  // namespace cuda

CudaBackend make_cuda_backend() {
  const cuda::Discovery found = cuda::discover();
  if (!found.reason.empty()) {
    return {.reason = found.reason};
  }
  return {.backend = std::make_unique<cuda::GpuBackend>(found)};
}

}  // namespace crossover
