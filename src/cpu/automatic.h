// SPDX-License-Identifier: Apache-2.0
// Which executions a network has on the CPU, and Execution::automatic there.
#pragma once

#include <memory>
#include <vector>

#include "crossover/backend.h"

namespace crossover::cpu {

/// How a Workload that was optimize()d can be executed. Beside eager it is winograd where there are
/// convolutions that its products may compute, or fused where all layers are Linear; auto where
/// there is a choice.
std::vector<Execution> executions_of(const Workload& workload);

/// Eager and fused, on one thread and on as many as the options have; where
/// executions_of() has it, eager and winograd, on as many as the options have.
std::unique_ptr<Plan> plan_automatic(const Workload& workload, const CompileOptions& options);

}  // namespace crossover::cpu
