// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: the first GPU, what it has, and what can be made for it.
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../automatic/automatic.h"
#include "../planning/plan.h"
#include "../probes/probes.h"
#include "backend.h"
#include "crossover/backend.h"
#include "crossover/executions.h"
#include "crossover/training.h"
#include "nvml.h"
#include "planned.h"
#include "rank_gpu.h"
#include "runtime.h"

namespace crossover {
namespace cuda {
namespace {

/// Of all ways to run a Workload: an epoch may take as long as this by itself.
constexpr double most_seconds_of_trials = 10;

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
             MakeConvolutionLibrary make_convolutions, std::shared_ptr<Collectives> collectives,
             MakeSdpaLibrary make_sdpas)
      : device_(device),
        make_products_(std::move(make_products)),
        make_convolutions_(std::move(make_convolutions)),
        make_sdpas_(std::move(make_sdpas)),
        collectives_(std::move(collectives)),
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
    if (const std::string nvrtc = nvrtc_version(); !nvrtc.empty()) {
      libraries.emplace("nvrtc", nvrtc);
    }
    if (collectives_) {
      libraries.emplace("nccl", nccl_version());
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
    if (options.ranks != nullptr &&
        (options.execution == Execution::automatic || options.execution == Execution::persistent)) {
      throw Unsupported(
          "persistent and auto are for one process: a kernel can't call NCCL, and each rank might "
          "choose another way; with --ranks a GPU has eager, overlapped, graph and graph-epoch");
    }
    device_.use();
    return options.execution == Execution::automatic
               ? plan_automatic(workload, options)
               : make_gpu_plan(workload, options, device_, algorithms(options.precision),
                               collectives_);
  }

  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override {
    device_.use();
    return cuda::make_probe(spec, device_.properties);
  }

 private:
  struct Libraries {
    std::shared_ptr<ProductLibrary> products;
    std::shared_ptr<ConvolutionLibrary> convolutions;
    std::shared_ptr<SdpaLibrary> sdpas;
  };

  /// Plans choose by themselves, among what the libraries told once: a handle takes long to make,
  /// and plans of cuDNN's to compile.
  [[nodiscard]] SharedAlgorithms algorithms(Precision precision) const {
    Libraries& its = libraries_[precision];
    if (its.sdpas == nullptr) {
      const auto memory = static_cast<std::int64_t>(device_.properties.totalGlobalMem);
      its.products = make_products_(precision);
      its.convolutions = make_convolutions_(precision, memory);
      its.sdpas = make_sdpas_(precision, memory);
    }
    return {.products = std::make_shared<Products>(its.products),
            .convolutions = std::make_shared<Convolutions>(its.convolutions),
            .sdpas = std::make_shared<Sdpas>(its.sdpas)};
  }

  /// A trial passes over the whole order where a way runs that as a whole.
  [[nodiscard]] std::unique_ptr<Plan> plan_automatic(const Workload& workload,
                                                     const CompileOptions& options) const {
    std::map<std::pair<ProductChoice, ConvolutionChoice>, SharedAlgorithms> shared;
    Trials trials{.runs = std::ssize(workload.order),
                  .most_seconds = most_seconds_of_trials,
                  .begin = [workload](Program& program) { begin_trial(program, workload); }};
    std::vector<Way> ways;
    for (const Choice& choice : choices(workload, options)) {
      CompileOptions own = options;
      own.execution = choice.execution;
      own.products = choice.products;
      own.convolutions = choice.convolutions;
      const auto [at, is_new] = shared.try_emplace({choice.products, choice.convolutions});
      if (is_new) {
        at->second = algorithms(options.precision);
      }
      ways.push_back({choice, [&, own, its = at->second] {
                        return make_gpu_plan(optimize(workload, own), own, device_, its);
                      }});
      trials.least = facts_of(choice.execution).of_whole_order ? trials.runs : trials.least;
    }
    return std::make_unique<AutomaticPlan>(ways, trials, [workload](Program& program) {
      // Gradients, which not all ways keep, every step computes anew.
      clear(program, workload, {Role::data, Role::parameter, Role::state, Role::loss});
    });
  }

  Device device_;
  MakeProductLibrary make_products_;
  MakeConvolutionLibrary make_convolutions_;
  MakeSdpaLibrary make_sdpas_;
  mutable std::map<Precision, Libraries> libraries_;
  std::shared_ptr<Collectives> collectives_;
  Nvml nvml_;
  GpuFacts facts_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const Device& device, MakeProductLibrary make_products,
                                      MakeConvolutionLibrary make_convolutions,
                                      std::shared_ptr<Collectives> collectives,
                                      MakeSdpaLibrary make_sdpas) {
  return std::make_unique<GpuBackend>(device, std::move(make_products),
                                      std::move(make_convolutions), std::move(collectives),
                                      std::move(make_sdpas));
}

}  // namespace cuda

CudaBackend make_cuda_backend() {
  constexpr int first = 0;
  const cuda::Discovery found = cuda::discover(first);
  if (!found.reason.empty()) {
    return {.reason = found.reason};
  }
  try {
    static_cast<void>(cublasLtGetVersion());
  } catch (const Unsupported& missing) {
    return {.reason = missing.what()};
  }
  return {.backend = cuda::make_backend(found.device, cuda::make_cublaslt_library)};
}

CudaBackend make_cuda_backend(Ranks& ranks) {
  cuda::GpuOfRank found = cuda::gpu_of_rank(ranks);
  if (!found.gpu.reason.empty()) {
    return {.reason = found.gpu.reason};
  }
  return {.backend = cuda::make_backend(found.gpu.device, cuda::make_cublaslt_library,
                                        cuda::make_cudnn_library, std::move(found.collectives))};
}

}  // namespace crossover
