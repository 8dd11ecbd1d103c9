// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: the first GPU, what it has, and what can be made for it.
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "../probes/probes.h"
#include "backend.h"
#include "crossover/backend.h"
#include "nvml.h"
#include "planned.h"
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

class GpuBackend : public PlannedGpu {
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

  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& workload,
                                           const CompileOptions& options) const override {
    check(workload, options.precision);
    if (const std::string missing = missing_for(options.precision); !missing.empty()) {
      throw Unsupported(missing);
    }
    device_.use();
    return make_gpu_plan(workload, options, device_, make_products_(options.precision),
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
