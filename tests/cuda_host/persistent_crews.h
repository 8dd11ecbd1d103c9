// SPDX-License-Identifier: Apache-2.0
// Who trains in tests of the persistent kernel, and what.
#pragma once

#include <ostream>
#include <string>
#include <utility>

#include "cuda_host.h"
#include "emulated.h"
#include "plan/persistent.h"

namespace crossover::test {

inline constexpr CompileOptions persistent{.execution = Execution::persistent};

/// A full and a short batch, extents that are no multiples of four, and more of a batch than a warp
/// has lanes.
inline Training odd_training(const Optimizer& optimizer, bool update_fused = false,
                             LossFunction loss = LossFunction::cross_entropy,
                             Activation activation = Activation::sigmoid) {
  const Model model = mlp("odd", {5, 18, 7, 3}, activation, loss);
  Workload workload =
      fuse(training_epoch(model, {.rows = 90, .batch = 37, .optimizer = optimizer}));
  if (update_fused) {
    workload = fuse_update(std::move(workload));
  }
  return {std::move(workload), uniform_data(model, 90)};
}

/// Who trains, by at most so many threads of a block.
struct Crew {
  cuda::TeamKind team = cuda::TeamKind::block;
  unsigned blocks = 1;
  int threads = 512;
};

inline void PrintTo(const Crew& crew, std::ostream* out) {
  *out << (crew.team == cuda::TeamKind::block     ? "one_block"
           : crew.team == cuda::TeamKind::cluster ? "cluster_of_" + std::to_string(crew.blocks)
                                                  : "all_blocks")
       << "_of_" << crew.threads;
}

inline cuda::PersistentPlan plan_of(const Workload& workload) {
  const cuda_host::Device& device = cuda_host::device();
  return cuda::plan_persistent(workload, persistent,
                               {.shared_bytes = static_cast<std::int64_t>(device.shared_bytes),
                                .threads = device.threads,
                                .cluster_blocks = static_cast<int>(device.cluster_blocks),
                                .multiprocessors = device.multiprocessors,
                                .cache_bytes = device.cache_bytes});
}

/// Makes the device such that the planner takes that team. A cluster gets the least shared memory
/// that it can do with, where less does than for smaller ones or one block. False where it does
/// not.
inline bool leave_room_for(const Crew& crew, const Workload& workload) {
  cuda_host::Device& device = cuda_host::device();
  device.threads = crew.threads;
  device.cluster_blocks = crew.blocks;
  if (crew.team == cuda::TeamKind::grid) {
    device.shared_bytes = 0;
    device.multiprocessors = 3;
  } else if (crew.team == cuda::TeamKind::cluster) {
    std::size_t too_little = 0;
    while (device.shared_bytes - too_little > 16) {
      const std::size_t most = device.shared_bytes;
      device.shared_bytes = (too_little + most) / 2;
      if (!plan_of(workload).is_on_chip()) {
        too_little = std::exchange(device.shared_bytes, most);
      }
    }
  }
  const cuda::PersistentPlan plan = plan_of(workload);
  return plan.team == crew.team &&
         (plan.team == cuda::TeamKind::grid || plan.blocks == static_cast<int>(crew.blocks));
}

inline constexpr Crew one_block{};
inline constexpr Crew all_blocks{cuda::TeamKind::grid, 1, 64};
constexpr Crew cluster_of(unsigned blocks, int threads) {
  return {cuda::TeamKind::cluster, blocks, threads};
}

}  // namespace crossover::test
