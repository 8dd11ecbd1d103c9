// SPDX-License-Identifier: Apache-2.0
// Which GPU a rank trains on, and its sums over the ranks.
#pragma once

#include <memory>

#include "../libraries/collectives.h"
#include "crossover/ranks.h"
#include "runtime.h"

namespace crossover::cuda {

struct GpuOfRank {
  Discovery gpu;
  std::shared_ptr<Collectives> collectives;  ///< none where there is a reason for no GPU
};

/// Of the GPUs that it sees, rank r of a machine has the r-th: where a launcher shows each rank
/// another one, that. All ranks call it at once, and all get a GPU or none does: a reason where
/// none of them sees any. Throws Unsupported, with the same sentence on all, where some rank has
/// none, where two have the same one (unless NCCL_MULTI_RANK_GPU_ENABLE=1), or NCCL fails.
GpuOfRank gpu_of_rank(Ranks& ranks);

}  // namespace crossover::cuda
