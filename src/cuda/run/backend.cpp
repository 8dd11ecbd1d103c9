// SPDX-License-Identifier: Apache-2.0
// The CUDA backend: the first GPU, what it has, and what can be made for it.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../automatic/automatic.h"
#include "../base/nvml.h"
#include "../base/runtime.h"
#include "../libraries/library.h"
#include "../plan/plan.h"
#include "../plan/planned.h"
#include "../probes/probes.h"
#include "backend.h"
#include "crossover/backend.h"
#include "crossover/executions.h"
#include "crossover/ranks.h"
#include "crossover/training.h"

namespace crossover {
namespace cuda {
namespace {

// ---- Which GPU a rank trains on, and its sums over the ranks.

struct GpuOfRank {
  Discovery gpu;
  std::shared_ptr<Collectives> collectives;  ///< none where there is a reason for no GPU
};

/// What each rank tells all others.
struct Told {
  std::size_t about = 0;        ///< a hash, which ranks compare
  std::array<char, 400> why{};  ///< not; "" where all is well

  [[nodiscard]] std::string reason() const { return why.data(); }
};

std::vector<Told> told_by_all(Ranks& ranks, std::size_t about, const std::string& why = "") {
  Told own{.about = about};
  why.copy(own.why.data(), own.why.size() - 1);
  std::vector<Told> all(static_cast<std::size_t>(ranks.size()));
  const auto bytes = std::as_writable_bytes(std::span(all));
  ranks.gather(std::as_bytes(std::span(&own, 1)), ranks.rank() == 0 ? bytes : bytes.first(0));
  ranks.broadcast(bytes);
  return all;
}

/// The first rank that says why not; none of them where it is as large as their number.
std::size_t failing(const std::vector<Told>& all) {
  const auto first =
      std::find_if(all.begin(), all.end(), [](const Told& one) { return one.why.front() != 0; });
  return static_cast<std::size_t>(first - all.begin());
}

std::size_t hash(const std::string& text) { return std::hash<std::string>()(text); }

std::string host_name() {
  std::array<char, 256> name{};
  static_cast<void>(gethostname(name.data(), name.size() - 1));
  return name.data();
}

bool may_share_a_gpu() {
  const char* value = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return value != nullptr && std::string_view(value) == "1";
}

/// Of this machine's ranks how many come before this one.
int place_on_host(Ranks& ranks) {
  const std::vector<Told> hosts = told_by_all(ranks, hash(host_name()));
  const auto own = hosts.begin() + ranks.rank();
  return static_cast<int>(std::count_if(
      hosts.begin(), own, [&](const Told& host) { return host.about == own->about; }));
}

/// Without CUDA's context, which takes a GPU's memory.
std::size_t identity(int ordinal) {
  cudaDeviceProp gpu{};
  if (cudaGetDeviceProperties(&gpu, ordinal) != cudaSuccess) {
    return 0;  // it will tell why
  }
  return hash(host_name() + " " + std::to_string(gpu.pciDomainID) + ":" +
              std::to_string(gpu.pciBusID) + ":" + std::to_string(gpu.pciDeviceID));
}

void require_a_gpu_each(Ranks& ranks, int ordinal) {
  const std::vector<Told> gpus = told_by_all(ranks, identity(ordinal));
  for (std::size_t rank = 0; rank < gpus.size() && !may_share_a_gpu(); ++rank) {
    for (std::size_t other = 0; other < rank && gpus[rank].about != 0; ++other) {
      if (gpus[other].about == gpus[rank].about) {
        throw Unsupported(
            "there are more ranks than GPUs: ranks " + std::to_string(other) + " and " +
            std::to_string(rank) + " of " + std::to_string(gpus.size()) +
            " would share one, which NCCL refuses; start as many ranks as there are GPUs, say "
            "--cuda=off, or, for a test, let NCCL 2.30 or later share one with "
            "NCCL_MULTI_RANK_GPU_ENABLE=1, NCCL_NVLS_ENABLE=0 and NCCL_MAX_CTAS=1");
      }
    }
  }
}

/// Of the GPUs that it sees, rank r of a machine has the r-th: where a launcher shows each rank
/// another one, that. All ranks call it at once, and all get a GPU or none does: a reason where
/// none of them sees any. Throws Unsupported, with the same sentence on all, where some rank has
/// none, where two have the same one (unless NCCL_MULTI_RANK_GPU_ENABLE=1), or NCCL fails.
GpuOfRank gpu_of_rank(Ranks& ranks) {
  const int place = place_on_host(ranks);
  int count = 0;
  const bool sees_any = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  const int ordinal = sees_any ? place % count : 0;
  require_a_gpu_each(ranks, ordinal);
  GpuOfRank found{.gpu = discover(ordinal), .collectives = nullptr};
  const std::vector<Told> gpus = told_by_all(ranks, 0, found.gpu.reason);
  if (const std::size_t rank = failing(gpus); rank < gpus.size()) {
    if (std::all_of(gpus.begin(), gpus.end(), [](const Told& one) { return one.why[0] != 0; })) {
      return found;
    }
    throw Unsupported("rank " + std::to_string(rank) + " has no GPU, but others do: " +
                      gpus[rank].reason() + "; start ranks where each has one");
  }
  std::string why;
  try {
    found.collectives = make_nccl(ranks);
  } catch (const std::runtime_error& error) {
    why = error.what();
  }
  const std::vector<Told> sums = told_by_all(ranks, 0, why);
  if (const std::size_t rank = failing(sums); rank < sums.size()) {
    throw Unsupported("rank " + std::to_string(rank) + ": " + sums[rank].reason());
  }
  return found;
}

// ---- The backend

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
    return {.cache_bytes = gpu.l2CacheSize,
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
        (options.execution == Execution::automatic || facts_of(options.execution).in_one_kernel)) {
      throw Unsupported(
          "persistent, tailored and auto are for one process: a kernel can't call NCCL, and each "
          "rank might "
          "choose another way; with --ranks a GPU has " +
          names_of_executions(&ExecutionFacts::on_gpu, /*on_ranks=*/true));
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
      if (!facts_of(choice.execution).in_one_kernel) {
        own.copies = 1;  // is decided with the first alone
      }
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

FoundBackend make_cuda_backend(Ranks* ranks) {
  constexpr int first = 0;
  cuda::GpuOfRank found = ranks == nullptr
                              ? cuda::GpuOfRank{.gpu = cuda::discover(first), .collectives = {}}
                              : cuda::gpu_of_rank(*ranks);
  if (!found.gpu.reason.empty()) {
    return {.reason = found.gpu.reason};
  }
  try {
    static_cast<void>(cublasLtGetVersion());
  } catch (const Unsupported& missing) {
    return {.reason = missing.what()};
  }
  return {.backend = cuda::make_backend(found.gpu.device, cuda::make_cublaslt_library,
                                        cuda::make_cudnn_library, std::move(found.collectives))};
}

}  // namespace crossover
