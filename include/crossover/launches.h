// SPDX-License-Identifier: Apache-2.0
// How many launches a Workload needs on a device, counted without the device or its memory: the
// basis of predictions for networks that were never compiled.
#pragma once

#include <cstdint>

#include "crossover/backend.h"
#include "crossover/step.h"

namespace crossover {

/// What the CUDA backend's optimize() makes of a Workload, of a GPU that need not be there.
Workload optimize_for_cuda(Workload workload, const CompileOptions& options);

/// What Program::launches() returns on the CPU for the Workload in the form that is compiled.
std::int64_t cpu_launches(const Workload& workload);

/// The same for CUDA, assuming that cuBLASLt has an algorithm for each requested epilogue. Throws
/// std::overflow_error as plan_memory() does.
std::int64_t cuda_launches(const Workload& workload, const CompileOptions& options);

/// Multiprocessors that Execution::persistent keeps busy on a GPU that has clusters; 0: all. As
/// above.
int cuda_multiprocessors(const Workload& workload, const CompileOptions& options);

}  // namespace crossover
