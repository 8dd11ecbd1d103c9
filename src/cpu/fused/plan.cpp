// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

namespace crossover::cpu {

std::unique_ptr<Plan> plan_fused(const Workload& /*workload*/, const CompileOptions& /*options*/) {
  throw Unsupported("the CPU has no fused steps yet; drop --execution=fused");
}

}  // namespace crossover::cpu
