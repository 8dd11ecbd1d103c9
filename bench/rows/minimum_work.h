// SPDX-License-Identifier: Apache-2.0
// What a row asks of its device at least. Readers of the file turn it into the row's bound, with
// the ceilings that its rows of the family Peak have measured (plots/core/bounds.py).
#pragma once

#include <cstdint>

#include "crossover/backend.h"
#include "crossover/cost.h"
#include "rows/device.h"

namespace crossover::bench {

/// What one iteration of a row takes at least, counted, not measured.
struct MinimumWork {
  double flops = 0;
  double memory_bytes = 0;  ///< that no cache can save
  double bytes_to_device = 0;
  double bytes_from_device = 0;
  double launches = 0;
  bool graph = false;  ///< the launches are nodes of CUDA graphs
};

/// Of the step's batch, as it comes from the host.
std::int64_t input_bytes(const Workload& workload, const Step& step);

/// `counted` is the Workload's cost before it was rearranged. Of memory traffic only what the cache
/// can't hold from one step to the next is counted: each step's tensors, less the cache.
MinimumWork minimum_work_of(const Workload& workload, const Cost& counted, const Program& program,
                            const CompileOptions& options, const Device& device);

}  // namespace crossover::bench
