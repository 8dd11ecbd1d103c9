// SPDX-License-Identifier: Apache-2.0
// The CPU backend: what oneDNN has here, and what can be made for it.
#include "crossover/backend.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../../automatic/automatic.h"
#include "../base/threads.h"
#include "../fused/plan.h"
#include "../plan/primitives.h"
#include "../winograd/passes.h"
#include "crossover/dense_training.h"
#include "crossover/executions.h"
#include "crossover/training.h"
#include "plan.h"
#include "probes.h"

namespace crossover {
namespace cpu {
namespace {

// ---- Which executions a network has on the CPU, and Execution::automatic there.

/// How a Workload that was optimize()d can be executed. Beside eager it is winograd where there are
/// convolutions that its products may compute, or fused where all layers are Linear; auto where
/// there is a choice.
std::vector<Execution> executions_of(const Workload& workload) {
  if (winograd::may_take_any(workload)) {
    return {Execution::eager, Execution::winograd, Execution::automatic};
  }
  try {
    if (trains(workload)) {
      static_cast<void>(dense_training(workload));
    } else {
      static_cast<void>(dense_pass(workload));
    }
    return {Execution::eager, Execution::fused, Execution::automatic};
  } catch (const Unsupported&) {
    return {Execution::eager};
  }
}

/// Eager and fused, on 1, 2, 4 threads and so on up to as many as the options have; where
/// executions_of() has it, eager and winograd, on as many as the options have.
std::unique_ptr<Plan> plan_automatic(const Workload& workload, const CompileOptions& options) {
  const auto shared = std::make_shared<const Workload>(workload);
  const std::vector<Execution> all = executions_of(workload);
  const auto has = [&](Execution execution) {
    return std::find(all.begin(), all.end(), execution) != all.end();
  };
  std::vector<Way> ways;
  const auto add = [&](Execution execution, int threads) {
    if (!has(execution)) {
      return;
    }
    CompileOptions own = options;
    own.execution = execution;
    own.threads = threads;
    ways.push_back({{execution, threads}, [shared, own]() -> std::unique_ptr<Plan> {
                      if (own.execution == Execution::fused) {
                        return plan_fused(*shared, own);
                      }
                      return std::make_unique<CpuPlan>(*shared, own);
                    }});
  };
  if (has(Execution::winograd)) {  // long steps, in which all threads pay
    add(Execution::eager, options.threads);
    add(Execution::winograd, options.threads);
  } else {
    add(Execution::eager, 1);
    add(Execution::fused, 1);
    for (int threads = 2; threads < 2 * options.threads; threads *= 2) {
      const int several = std::min(threads, options.threads);
      if (trains(workload)) {  // a fused pass has one thread
        add(Execution::fused, several);
      }
      add(Execution::eager, several);
    }
  }
  return std::make_unique<AutomaticPlan>(
      ways, Trials{.runs = std::ssize(workload.order)},
      [shared](Program& program) {  // what training has changed; the rest each step computes anew
        clear(program, *shared, {Role::parameter, Role::gradient, Role::state, Role::loss});
      });
}

// ---- The backend

class CpuBackend : public Backend {
 public:
  [[nodiscard]] Description describe() const override {
    const dnnl_version_t* version = dnnl_version();
    return {.libraries = {
                {"onednn", std::to_string(version->major) + "." + std::to_string(version->minor) +
                               "." + std::to_string(version->patch)},
                {"onednn_isa", isa_name(dnnl::get_effective_cpu_isa())},
                {"openmp", std::to_string(_OPENMP)}}};
  }

  [[nodiscard]] std::string missing_for(Precision precision) const override {
    return missing_for_products(precision);
  }

  [[nodiscard]] Workload optimize(Workload workload,
                                  const CompileOptions& /*options*/) const override {
    return fuse_update(fuse(std::move(workload)));
  }

  [[nodiscard]] std::vector<Execution> executions(const Workload& workload,
                                                  Precision /*precision*/) const override {
    return executions_of(fuse(workload));
  }

  /// Eager and winograd by their kernels; fused is one call for all, auto as it would be eager.
  [[nodiscard]] Estimate estimate(const Workload& workload,
                                  const CompileOptions& options) const override {
    if (options.execution == Execution::fused) {
      return {.launches = 1};
    }
    return {.launches = launches_of(workload, options.execution)};
  }

  [[nodiscard]] std::unique_ptr<Plan> plan(const Workload& workload,
                                           const CompileOptions& options) const override {
    if (options.threads < 1) {
      throw std::invalid_argument("a CPU program needs at least one thread");
    }
    if (options.precision == Precision::tf32) {
      throw Unsupported(missing_for(options.precision));
    }
    allow_threads(options.threads);
    check(workload, options.precision);
    switch (options.execution) {
      case Execution::eager:
      case Execution::winograd:
      case Execution::overlapped:
        return std::make_unique<CpuPlan>(workload, options);
      case Execution::fused:
        return plan_fused(workload, options);
      case Execution::automatic:
        return plan_automatic(workload, options);
      default:
        throw Unsupported(std::string(facts_of(options.execution).name) +
                          " is a GPU's; the CPU has " +
                          names_of_executions(&ExecutionFacts::on_cpu));
    }
  }

  [[nodiscard]] std::unique_ptr<Probe> make_probe(const ProbeSpec& spec) const override {
    return cpu::make_probe(spec);
  }

 private:
#if defined(__aarch64__)
  /// oneDNN says them by numbers that are x86-64's in its headers.
  static std::string isa_name(dnnl::cpu_isa isa) {
    switch (static_cast<int>(isa)) {
      case 0x1:
        return "asimd";
      case 0x3:
        return "sve_128";
      case 0x7:
        return "sve_256";
      case 0x27:
        return "sve_512";
      default:
        return "isa " + std::to_string(static_cast<int>(isa));
    }
  }
#else
  static std::string isa_name(dnnl::cpu_isa isa) {
    switch (isa) {
      case dnnl::cpu_isa::sse41:
        return "sse41";
      case dnnl::cpu_isa::avx:
        return "avx";
      case dnnl::cpu_isa::avx2:
        return "avx2";
      case dnnl::cpu_isa::avx2_vnni:
        return "avx2_vnni";
      case dnnl::cpu_isa::avx512_core:
        return "avx512_core";
      case dnnl::cpu_isa::avx512_core_vnni:
        return "avx512_core_vnni";
      case dnnl::cpu_isa::avx512_core_bf16:
        return "avx512_core_bf16";
      case dnnl::cpu_isa::avx512_core_fp16:
        return "avx512_core_fp16";
      case dnnl::cpu_isa::avx512_core_amx:
        return "avx512_core_amx";
      default:
        return "isa " + std::to_string(static_cast<int>(isa));
    }
  }
#endif
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<cpu::CpuBackend>(); }

}  // namespace crossover
