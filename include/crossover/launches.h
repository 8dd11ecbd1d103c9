// SPDX-License-Identifier: Apache-2.0
// How many calls a device would start for a Workload, told without the device and without its
// memory: predictions for a network that nobody has compiled stand on it.
#pragma once

#include <cstdint>

#include "crossover/backend.h"
#include "crossover/step.h"

namespace crossover {

/// What Program::launches() of the CPU says once the Workload, arranged as it is compiled, is.
std::int64_t cpu_launches(const Workload& workload);

/// The same of CUDA, where cuBLASLt has an algorithm with each epilogue that is asked for. Throws
/// std::overflow_error as plan_memory() does.
std::int64_t cuda_launches(const Workload& workload, const CompileOptions& options);

}  // namespace crossover
