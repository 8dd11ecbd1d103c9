// SPDX-License-Identifier: Apache-2.0
// The Workload as the CPU will run it: kernels, layouts and memory, decided before any is taken.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "../base/layout.h"
#include "../plan/lowering.h"
#include "../run/program.h"
#include "crossover/backend.h"
#include "crossover/memory.h"
#include "crossover/step.h"

namespace crossover::cpu {

class CpuPlan : public Plan {
 public:
  /// The Workload must check(). `settled`: layouts that stand before any operation is asked; all
  /// others follow from the operations. Throws Unsupported, OutOfMemory.
  CpuPlan(Workload workload, const CompileOptions& options,
          const std::map<Id, Layout>& settled = {});

  [[nodiscard]] std::int64_t bytes() const override { return memory_.bytes + scratch_.bytes(); }
  [[nodiscard]] std::int64_t bytes_keeping_activations() const override;
  [[nodiscard]] std::int64_t launches() const override;
  [[nodiscard]] std::unique_ptr<Program> instantiate() override;

  /// What the Program's facts will say.
  [[nodiscard]] Reorders reorders() const;
  [[nodiscard]] int threads_used() const;

 private:
  [[nodiscard]] MemoryPlan memory(Activations activations) const;
  void describe_primitives();
  void describe_primitives(std::vector<PlannedKernel>& kernels);

  Workload workload_;
  const int threads_;
  const dnnl::engine engine_;
  LoweredWorkload lowered_;
  MemoryPlan memory_;
  Scratch scratch_;
};

/// What launches() is of such a plan, without its primitives and memory.
std::int64_t launches_of(const Workload& workload, Execution execution);

}  // namespace crossover::cpu
