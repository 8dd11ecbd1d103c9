// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "../base/threads.h"
#include "../operations/operations.h"

namespace crossover::cpu {

namespace {

/// What oneDNN throws, as what a Backend may throw.
template <class Work>
auto translating_errors(const Work& work) {
  try {
    return work();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) {
      throw OutOfMemory(error.what());
    }
    throw Unsupported(std::string("oneDNN: ") + error.what());
  }
}

std::int64_t count_kernels(const LoweredWorkload& lowered, const std::vector<Run>& order) {
  std::int64_t count = 0;
  for (const Run& run : order) {
    count += std::ssize(lowered.steps[static_cast<std::size_t>(run.step)]);
  }
  return count;
}

}  // namespace

CpuPlan::CpuPlan(Workload workload, const CompileOptions& options,
                 const std::map<Id, Layout>& settled)
    : workload_(std::move(workload)),
      threads_(options.threads),
      engine_(dnnl::engine::kind::cpu, 0) {
  translating_errors([&] {
    lowered_ = lower(workload_, threads_, engine_, settled, options.execution, options.ranks);
    memory_ = memory(options.keep_activations ? Activations::kept : Activations::share_memory);
    scratch_.copies_bytes = lowered_.copies_bytes;
    scratch_.workspace_bytes = lowered_.workspace_bytes;
    scratch_.kept_bytes = lowered_.kept_bytes;
    describe_primitives();
  });
}

void CpuPlan::describe_primitives() {
  describe_primitives(lowered_.once);
  for (std::vector<PlannedKernel>& step : lowered_.steps) {
    describe_primitives(step);
  }
}

void CpuPlan::describe_primitives(std::vector<PlannedKernel>& kernels) {
  for (PlannedKernel& kernel : kernels) {
    if (auto* primitive = std::get_if<Primitive>(&kernel.work)) {
      const Threads made_for(kernel.threads);
      if (primitive->describe) {
        primitive->description = primitive->describe(engine_);
      }
      scratch_.primitive_bytes =
          std::max(scratch_.primitive_bytes, scratchpad_bytes(primitive->description));
    }
  }
}

MemoryPlan CpuPlan::memory(Activations activations) const {
  return plan_memory(workload_, physical_bytes(workload_.tensors, lowered_.layouts), activations);
}

std::int64_t CpuPlan::bytes_keeping_activations() const {
  return memory(Activations::kept).bytes + scratch_.bytes();
}

std::int64_t CpuPlan::launches() const { return count_kernels(lowered_, workload_.order); }

int CpuPlan::threads_used() const {
  int most = 1;
  for (const std::vector<PlannedKernel>& step : lowered_.steps) {
    for (const PlannedKernel& kernel : step) {
      most = std::max(most, kernel.threads);
    }
  }
  return most;
}

Reorders CpuPlan::reorders() const {
  Reorders all;
  for (const Run& run : workload_.order) {
    for (const PlannedKernel& kernel : lowered_.steps[static_cast<std::size_t>(run.step)]) {
      if (kernel.category == OpCategory::reorder) {
        ++all.count;
        all.bytes += kernel.moved_bytes;
      }
    }
  }
  return all;
}

std::unique_ptr<Program> CpuPlan::instantiate() {
  return translating_errors([&]() -> std::unique_ptr<Program> {
    flush_denormals(threads_);  // before the first number is computed
    Tensors tensors(workload_.tensors, lowered_.layouts, memory_, threads_);
    auto steps = std::make_unique<BoundSteps>(lowered_, tensors, scratch_, engine_, threads_);
    return std::make_unique<CpuProgram>(std::move(tensors), std::move(steps), workload_.order,
                                        ProgramFacts{.bytes = bytes(),
                                                     .launches = launches(),
                                                     .reorders = reorders(),
                                                     .threads = threads_used()},
                                        threads_);
  });
}

std::int64_t launches_of(const Workload& workload, Execution execution) {
  return translating_errors([&] {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return count_kernels(lower(workload, 1, engine, {}, execution), workload.order);
  });
}

}  // namespace crossover::cpu
