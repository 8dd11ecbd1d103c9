// SPDX-License-Identifier: Apache-2.0
// A thread's share of a loop: elements thread_index(), + thread_count(), ...
#pragma once

#include <algorithm>
#include <cstdint>

#include "launch.cuh"

namespace crossover::cuda {

constexpr int block_threads = 256;

inline __device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
inline __device__ std::int64_t thread_count() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

/// One thread for each element, up to what keeps any GPU full; loops take the rest.
inline Grid grid_for(std::int64_t count) {
  constexpr std::int64_t most_blocks = 4096;
  const std::int64_t blocks = (count + block_threads - 1) / block_threads;
  return {static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, most_blocks)), block_threads};
}

}  // namespace crossover::cuda
