// SPDX-License-Identifier: Apache-2.0
#include "backend.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "../../automatic/automatic.h"
#include "../execution/graphs.h"
#include "../kernels/persistent.cuh"
#include "../planning/plan.h"
#include "program.h"

namespace crossover::cuda {
namespace {

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

int attribute(cudaDeviceAttr of) {
  int device = 0;
  int value = 0;
  CROSSOVER_CUDA_CHECK(cudaGetDevice(&device));
  CROSSOVER_CUDA_CHECK(cudaDeviceGetAttribute(&value, of, device));
  return value;
}

/// Unsupported where the driver would end such a kernel, or not launch it.
void require_kernel_for_all(const PersistentPlan& plan) {
  if (attribute(cudaDevAttrKernelExecTimeout) != 0) {
    throw Unsupported(
        "one kernel for the whole order may run longer than the driver lets it on this GPU, which "
        "has a display (kernelExecTimeout)");
  }
  if (plan.team == TeamKind::grid && attribute(cudaDevAttrCooperativeLaunch) == 0) {
    throw Unsupported(
        "one kernel for the whole order needs all multiprocessors for this network, and this GPU, "
        "a virtual one perhaps, launches no kernel whose blocks wait for each other "
        "(cooperativeLaunch)");
  }
}

/// Ranks must not choose by time: each might have another form. And sums stay out of loops, whose
/// bodies take kernels, fills and copies alone, while NCCL may also call the host.
constexpr GraphForm form_of_ranks{.loops = false, .streams = 1};

class GpuPlan : public Plan {
 public:
  /// The libraries answer here what they have: instantiate() finds nothing to decide but between
  /// algorithms and forms of graphs. Only where none of those algorithms runs that they promised,
  /// or the driver refuses the loops that its version has, is the plan another.
  GpuPlan(Workload workload, const CompileOptions& options, const Device& device,
          SharedAlgorithms algorithms, std::shared_ptr<Collectives> collectives)
      : workload_(std::move(workload)),
        options_(options),
        device_(device),
        algorithms_(std::move(algorithms)),
        collectives_(std::move(collectives)) {
    make(options_.ranks != nullptr ? form_of_ranks : options_.graph_form.value_or(largest_form));
    if (!launches_of<SumLaunch>(plan_).empty() && collectives_ == nullptr) {
      throw Unsupported("this GPU is that of a process alone, which has no ranks to sum over");
    }
  }

  [[nodiscard]] std::int64_t bytes() const override { return plan_.bytes; }

  [[nodiscard]] std::int64_t bytes_keeping_activations() const override {
    CompileOptions options = options_;
    options.keep_activations = true;
    return planned(form_, options).bytes;
  }

  [[nodiscard]] std::int64_t launches() const override { return launches_; }

  [[nodiscard]] std::unique_ptr<Program> instantiate() override {
    if (std::exchange(instantiated_, true)) {
      throw std::logic_error("a Plan is instantiated once");
    }
    device_.use();
    if (options_.ranks != nullptr || options_.graph_form || !plan_.mode.is_graph()) {
      return program();
    }
    make(fastest_form());
    return program();
  }

 private:
  /// Throws Unsupported.
  [[nodiscard]] LaunchPlan planned(const GraphForm& form, CompileOptions options) const {
    options.graph_form = form;
    return make_plan(
        workload_, options,
        [&](const ProductForm& product) { return algorithms_.products->supports(product); },
        [&](const ConvolutionForm& one) { return algorithms_.convolutions->supports(one); },
        options_.execution == Execution::persistent ? on_chip(device_.properties) : OnChip{},
        loops_, static_cast<std::int64_t>(device_.properties.totalGlobalMem),
        [&](const SdpaForm& one) { return algorithms_.sdpas->supports(one); });
  }

  void make(const GraphForm& form) {
    plan_ = planned(form, options_);
    if (plan_.persistent) {
      require_kernel_for_all(*plan_.persistent);
    }
    form_ = form;
    launches_ = count_launches(workload_, plan_);
    check_order_graph(workload_, plan_);
  }

  /// A form that does not run is not planned again, and loops are refused once: so each attempt has
  /// less to try than the one before, and few are enough.
  [[nodiscard]] std::unique_ptr<Program> program() {
    constexpr int most_attempts = 1000;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      try {
        return std::make_unique<CudaProgram>(workload_, plan_, algorithms_, collectives_, options_);
      } catch (const NoneRuns&) {
      } catch (const LoopsRefused&) {
        loops_ = false;
      }
      make(form_);
    }
    throw Unsupported("the GPU's libraries run none of " + std::to_string(most_attempts) +
                      " plans");
  }

  /// Passes over the whole order, in turn with the fastest so far: two are in memory.
  [[nodiscard]] GraphForm fastest_form() {
    const std::int64_t runs = std::ssize(workload_.order);
    const Trials trials{.runs = runs, .least = runs};
    std::unique_ptr<Program> fastest;
    double its_seconds = 0;
    return fastest_of(graph_forms(workload_, plan_), [&](const GraphForm& form) {
      make(form);
      std::unique_ptr<Program> made = program();
      begin_trial(*made, workload_);
      if (fastest == nullptr) {
        keep_busy([&] {
          made->enqueue(0, runs);
          made->wait();
        });
      }
      const double seconds = seconds_of_least(*made, trials, steady_seconds);
      if (fastest != nullptr && ratio_of_seconds({*fastest, its_seconds}, {*made, seconds}, trials,
                                                 steady_seconds) >= 1) {
        return false;
      }
      fastest = std::move(made);
      its_seconds = seconds;
      return true;
    });
  }

  const Workload workload_;
  const CompileOptions options_;
  const Device device_;
  const SharedAlgorithms algorithms_;
  const std::shared_ptr<Collectives> collectives_;
  bool instantiated_ = false;
  bool loops_ = has_graph_loops();
  GraphForm form_;
  LaunchPlan plan_;
  std::int64_t launches_ = 0;
};

}  // namespace

std::unique_ptr<Plan> make_gpu_plan(const Workload& workload, const CompileOptions& options,
                                    const Device& device, SharedAlgorithms algorithms,
                                    std::shared_ptr<Collectives> collectives) {
  return std::make_unique<GpuPlan>(workload, options, device, std::move(algorithms),
                                   std::move(collectives));
}

}  // namespace crossover::cuda
