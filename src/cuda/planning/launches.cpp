// SPDX-License-Identifier: Apache-2.0
#include "crossover/launches.h"

#include "persistent.h"
#include "plan.h"

namespace crossover {

std::int64_t cuda_launches(const Workload& workload, const CompileOptions& options) {
  return cuda::count_launches(
      workload,
      cuda::make_plan(workload, options, [](const cuda::ProductForm& /*form*/) { return true; }));
}

int cuda_multiprocessors(const Workload& workload, const CompileOptions& options) {
  const cuda::PersistentPlan plan = cuda::plan_persistent(workload, options, {});
  return plan.is_on_chip() ? plan.blocks : 0;
}

}  // namespace crossover
