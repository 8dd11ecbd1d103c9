// SPDX-License-Identifier: Apache-2.0
// What a Workload asks of a device at least: the measured ceilings turn it into a row's bound.
#pragma once

#include "ceilings.h"
#include "crossover/backend.h"
#include "crossover/cost.h"
#include "device.h"

namespace crossover::bench {

/// Of the step's batch, as it comes from the host.
std::int64_t input_bytes(const Workload& workload, const Step& step);

/// `counted` is the Workload's cost before it was rearranged. Of memory traffic only what the cache
/// can't hold from one step to the next is counted: each step's tensors, less the cache.
MinimumWork minimum_work_of(const Workload& workload, const Cost& counted, const Program& program,
                            const CompileOptions& options, const Device& device);

}  // namespace crossover::bench
