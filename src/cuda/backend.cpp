// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: the first GPU, what it has, and what can be made for it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "backend.h"
#include "crossover/backend.h"
#include "crossover/launches.h"
#include "cublaslt_library.h"
#include "execution/graphs.h"
#include "kernels/persistent.cuh"
#include "nvml.h"
#include "plan.h"
#include "probes.h"
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

/// Of clusters the largest that the driver finds room for.
OnChip on_chip(const cudaDeviceProp& device) {
  OnChip chip{.shared_bytes = static_cast<std::int64_t>(device.sharedMemPerBlockOptin),
              .multiprocessors = device.multiProcessorCount,
              .cache_bytes = device.l2CacheSize};
  chip.threads = std::min(chip.threads, device.maxThreadsPerBlock);
  while (chip.cluster_blocks > 1 &&
         !(device.clusterLaunch != 0 &&
           fits_training_cluster(chip.cluster_blocks, chip.threads, chip.shared_bytes))) {
    chip.cluster_blocks /= 2;
  }
  return chip;
}

class GpuPlan : public Plan {
 public:
  /// The libraries answer here what they have: instantiate() finds nothing to decide but between
  /// algorithms. Only where none of those runs that they promised, or the driver refuses the loops
  /// that its version has, is the plan another.
  GpuPlan(Workload workload, const CompileOptions& options, const Device& device,
          std::unique_ptr<ProductLibrary> products,
          std::unique_ptr<ConvolutionLibrary> convolutions)
      : workload_(std::move(workload)),
        options_(options),
        device_(device),
        products_(std::make_shared<Products>(std::move(products))),
        convolutions_(std::make_shared<Convolutions>(std::move(convolutions))) {
    make(*products_, *convolutions_);
  }

  [[nodiscard]] std::int64_t bytes() const override { return plan_.bytes; }

  [[nodiscard]] std::int64_t launches() const override { return launches_; }

  [[nodiscard]] std::unique_ptr<Program> instantiate() override {
    if (!products_) {
      throw std::logic_error("a Plan is instantiated once");
    }
    device_.use();
    const std::shared_ptr<Products> products = std::exchange(products_, nullptr);
    const std::shared_ptr<Convolutions> convolutions = std::exchange(convolutions_, nullptr);
    for (;;) {
      try {
        return std::make_unique<CudaProgram>(workload_, plan_, products, convolutions, options_);
      } catch (const NoneRuns&) {
        make(*products, *convolutions);
      } catch (const LoopsRefused&) {
        loops_ = false;
        make(*products, *convolutions);
      }
    }
  }

 private:
  /// Throws Unsupported.
  void make(Products& products, Convolutions& convolutions) {
    plan_ = make_plan(
        workload_, options_, [&](const ProductForm& form) { return products.supports(form); },
        [&](const ConvolutionForm& form) { return convolutions.supports(form); },
        options_.execution == Execution::persistent ? on_chip(device_.properties) : OnChip{},
        loops_);
    launches_ = count_launches(workload_, plan_);
    check_order_graph(workload_, plan_);
  }

  const Workload workload_;
  const CompileOptions options_;
  const Device device_;
  std::shared_ptr<Products> products_;
  std::shared_ptr<Convolutions> convolutions_;
  bool loops_ = has_graph_loops();
  LaunchPlan plan_;
  std::int64_t launches_ = 0;
};

class GpuBackend : public Backend {
 public:
  GpuBackend(const Device& device, MakeProductLibrary make_products,
             MakeConvolutionLibrary make_convolutions)
      : device_(device),
        make_products_(std::move(make_products)),
        make_convolutions_(std::move(make_convolutions)),
        nvml_(pci_bus_id(device.properties)),
        facts_(nvml_.facts()) {}

  [[nodiscard]] Description describe() const override {
    int driver = 0;
    int runtime = 0;
    CROSSOVER_CUDA_CHECK(cudaDriverGetVersion(&driver));
    CROSSOVER_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    const cudaDeviceProp& gpu = device_.properties;
    std::map<std::string, std::string> libraries{
        {"gpu", text(static_cast<const char*>(gpu.name))},
        {"compute_capability", std::to_string(gpu.major) + "." + std::to_string(gpu.minor)},
        {"cuda_driver", version_text(driver)},
        {"cuda_runtime", version_text(runtime)},
        {"cublaslt", std::to_string(cublasLtGetVersion())}};
    if (const std::string cudnn = cudnn_version(); !cudnn.empty()) {
      libraries.emplace("cudnn", cudnn);
    }
    return {.device = "cuda",
            .cache_bytes = gpu.l2CacheSize,
            .memory_bytes = static_cast<std::int64_t>(gpu.totalGlobalMem),
            .multiprocessors = gpu.multiProcessorCount,
            .start_seconds = device_.start_seconds,
            .gpu = facts_,
            .libraries = std::move(libraries)};
  }

  [[nodiscard]] GpuState state() const override { return nvml_.state(); }

  [[nodiscard]] std::string missing_for(Precision precision) const override {
    return missing_for_products(device_.properties, precision);
  }

  [[nodiscard]] Workload optimize(Workload workload, const CompileOptions& options) const override {
    return optimize_for_cuda(std::move(workload), options);
  }

  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& workload,
                                           const CompileOptions& options) const override {
    check(workload, options.precision);
    if (const std::string missing = missing_for(options.precision); !missing.empty()) {
      throw Unsupported(missing);
    }
    device_.use();
    return std::make_unique<GpuPlan>(workload, options, device_, make_products_(options.precision),
                                     make_convolutions_(options.precision));
  }

  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override {
    device_.use();
    return cuda::make_probe(spec, device_.properties);
  }

 private:
  Device device_;
  MakeProductLibrary make_products_;
  MakeConvolutionLibrary make_convolutions_;
  Nvml nvml_;
  GpuFacts facts_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const Device& device, MakeProductLibrary make_products,
                                      MakeConvolutionLibrary make_convolutions) {
  return std::make_unique<GpuBackend>(device, std::move(make_products),
                                      std::move(make_convolutions));
}

}  // namespace cuda

CudaBackend make_cuda_backend() {
  constexpr int first = 0;
  const cuda::Discovery found = cuda::discover(first);
  if (!found.reason.empty()) {
    return {.reason = found.reason};
  }
  return {.backend = cuda::make_backend(found.device, cuda::make_cublaslt_library)};
}

}  // namespace crossover
