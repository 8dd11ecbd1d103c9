// SPDX-License-Identifier: Apache-2.0
// Fused execution: a network of Linear layers trained, or used, without a call for each operation.
#pragma once

#include <memory>

#include "crossover/backend.h"

namespace crossover::cpu {

/// Throws Unsupported where dense_training() does, or dense_pass() where there is no loss, and in
/// other precisions than f32.
std::unique_ptr<Plan> plan_fused(const Workload& workload, const CompileOptions& options);

/// Of a forward_pass(), as one call. Throws Unsupported where dense_pass() does.
std::unique_ptr<Plan> plan_pass(const Workload& workload);

}  // namespace crossover::cpu
