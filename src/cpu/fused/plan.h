// SPDX-License-Identifier: Apache-2.0
// Execution::fused on the CPU.
#pragma once

#include <memory>

#include "crossover/backend.h"

namespace crossover::cpu {

/// Throws Unsupported where the Workload is not dense_training().
std::unique_ptr<Plan> plan_fused(const Workload& workload, const CompileOptions& options);

}  // namespace crossover::cpu
