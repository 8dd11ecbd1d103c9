// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: the first GPU, what it has, and what can be made for it.
#include <algorithm>
#include <memory>
#include <string>

#include "crossover/backend.h"
#include "plan.h"
#include "probes.h"
#include "product.h"
#include "program.h"
#include "runtime.h"

namespace crossover {
namespace cuda {
namespace {

std::string text(const char* characters) { return characters; }

class GpuBackend : public Backend {
 public:
  explicit GpuBackend(const cudaDeviceProp& device) : device_(device) {}

  [[nodiscard]] Description describe() const override {
    int driver = 0;
    int runtime = 0;
    CROSSOVER_CUDA_CHECK(cudaDriverGetVersion(&driver));
    CROSSOVER_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    return {.device = "cuda",
            .cache_bytes = device_.l2CacheSize,
            .libraries = {{"gpu", text(static_cast<const char*>(device_.name))},
                          {"compute_capability",
                           std::to_string(device_.major) + "." + std::to_string(device_.minor)},
                          {"cuda_driver", version_text(driver)},
                          {"cuda_runtime", version_text(runtime)},
                          {"cublaslt", std::to_string(cublasLtGetVersion())}}};
  }

  [[nodiscard]] std::string missing_for(Precision precision) const override {
    return missing_for_products(device_, precision);
  }

  /// With every mask that cuBLASLt may write, or what own kernels need in its place: it is not
  /// asked here which epilogues it has.
  [[nodiscard]] std::int64_t bytes_needed(const Workload& workload) const override {
    const auto all = [](const ProductForm&) { return true; };
    const auto plain = [](const ProductForm& form) { return form.epilogue == Epilogue::none; };
    return std::max(make_plan(workload, {}, all).bytes, make_plan(workload, {}, plain).bytes);
  }

  [[nodiscard]] std::unique_ptr<Program> compile(const Workload& workload,
                                                 const CompileOptions& options) const override {
    check(workload, options.precision);
    if (const std::string missing = missing_for(options.precision); !missing.empty()) {
      throw Unsupported(missing);
    }
    return std::make_unique<CudaProgram>(workload, options);
  }

  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override {
    return cuda::make_probe(spec, device_);
  }

 private:
  cudaDeviceProp device_;
};

}  // namespace
}  // namespace cuda

CudaBackend make_cuda_backend() {
  const cuda::Discovery found = cuda::discover();
  if (!found.reason.empty()) {
    return {.reason = found.reason};
  }
  return {.backend = std::make_unique<cuda::GpuBackend>(found.device)};
}

}  // namespace crossover
