// SPDX-License-Identifier: Apache-2.0
// What own kernels share. They keep to blocks of one dimension, static shared memory, block
// barriers and shuffles of full warps; sums are taken in a fixed order, so that a run repeats to
// the bit. A thread's share of a loop: elements thread_index(), + thread_count(), ...
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "launch.cuh"

namespace crossover::cuda {

constexpr int block_threads = 256;
constexpr int warp_threads = 32;
constexpr unsigned all_lanes = 0xffffffffU;  ///< of a warp
constexpr int block_warps = block_threads / warp_threads;

/// For __launch_bounds__: of blocks of a kernel so many at once on a multiprocessor that has room
/// for 2048 threads. On others the compiler is left alone.
template <int blocks>
constexpr int blocks_at_once =
#if defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000)
    blocks;
#else
    1;
#endif

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

/// For a launch that passes over several spans, one after another, so many elements at once.
template <class Spans>
Grid grid_for_largest(const Spans& spans, int at_once = 1) {
  std::int64_t largest = 0;
  for (int s = 0; s < spans.count; ++s) {
    largest = std::max(largest, spans.span[s].count);
  }
  return grid_for(largest / at_once);
}

// ---- What the lanes of a warp, or of equal groups of them, make of their values together; in each
// of them.

template <int lanes = warp_threads>
__device__ inline float group_max(float value) {
  for (int apart = lanes / 2; apart > 0; apart /= 2) {
    value = std::fmax(value, __shfl_xor_sync(all_lanes, value, apart));
  }
  return value;
}

template <int lanes = warp_threads>
__device__ inline float group_sum(float value) {
  for (int apart = lanes / 2; apart > 0; apart /= 2) {
    value += __shfl_xor_sync(all_lanes, value, apart);
  }
  return value;
}

}  // namespace crossover::cuda
