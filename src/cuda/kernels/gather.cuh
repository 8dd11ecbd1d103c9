// SPDX-License-Identifier: Apache-2.0
// Rows of a data set that lies on the device, for the run whose turn it is: the head of a step's
// graph, which holds one address for all runs.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "../base/site.h"
#include "../plan/launches/operand.h"

namespace crossover::cuda {

/// The rows of one tensor.
struct GatherSpan {
  const std::byte* from = nullptr;  // its first row
  std::byte* to = nullptr;
  std::int64_t row_bytes = 0;
  std::int64_t unit = 1;   // moved at once: 16 or less, which divides all addresses
  std::int64_t count = 0;  // of units
};
struct GatherArguments {
  GatherSpan span[max_gathered];
  int count = 0;
  const std::int64_t* run = nullptr;  // the device's counter
  const OrderedRun* order = nullptr;
  Networks networks;  // each gathers for itself
};
void gather(cudaStream_t stream, const GatherArguments& arguments);

// The two that follow are there with CUDA 12.4 and later.

/// The same at the head of a loop in a graph, each turn of which takes `cycle` runs: it also says
/// whether another turn follows, that is whether `end` is farther than this turn goes.
struct LoopCondition {
  unsigned long long handle = 0;  // a cudaGraphConditionalHandle
  std::int64_t cycle = 1, end = 0;
};
void gather_in_loop(cudaStream_t stream, const GatherArguments& arguments,
                    const LoopCondition& condition);

/// Loads the code of gather_in_loop(), which can't run outside of a loop to be loaded.
void prepare_gather_in_loop();

}  // namespace crossover::cuda
