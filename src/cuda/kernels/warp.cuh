// SPDX-License-Identifier: Apache-2.0
// What the lanes of a warp, or of equal groups of them, make of their values together; in each of
// them.
#pragma once

#include <cmath>

#include "grid.cuh"

namespace crossover::cuda {

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
