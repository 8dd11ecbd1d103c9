// SPDX-License-Identifier: Apache-2.0
// What the kernels share that gather rows.
#pragma once

#include "gather.cuh"
#include "networks.cuh"

namespace crossover::cuda {

/// This thread's share of one tensor's rows.
template <class Unit>
__device__ void copy_units(const std::byte* from, std::byte* to, std::int64_t count) {
  const auto* source = reinterpret_cast<const Unit*>(from);
  auto* target = reinterpret_cast<Unit*>(to);
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    target[i] = source[i];
  }
}

inline Grid grid_for_gathering(const GatherArguments& of) {
  Grid grid = grid_for_largest(of);
  grid.networks = static_cast<unsigned>(of.networks.count);
  return grid;
}

/// The one whose turn it is in the thread's network.
inline __device__ std::int64_t run_of_network(const GatherArguments& of) {
  return *of_network(of.run, of.networks.stride);
}

/// By all threads of a network: the rows of run `run`.
inline __device__ void gather_rows(const GatherArguments& of, std::int64_t run) {
  const std::int64_t stride = of.networks.stride;
  const std::int64_t first_row = of_network(of.order, stride)[run].first_row;
  for (int s = 0; s < of.count; ++s) {
    const GatherSpan& span = of.span[s];
    const std::byte* from = of_network(span.from, stride) + first_row * span.row_bytes;
    std::byte* to = of_network(span.to, stride);
    switch (span.unit) {
      case sizeof(float4):
        copy_units<float4>(from, to, span.count);
        break;
      case sizeof(float2):
        copy_units<float2>(from, to, span.count);
        break;
      case sizeof(std::uint32_t):
        copy_units<std::uint32_t>(from, to, span.count);
        break;
      case sizeof(std::uint16_t):
        copy_units<std::uint16_t>(from, to, span.count);
        break;
      default:
        copy_units<std::uint8_t>(from, to, span.count);
        break;
    }
  }
}

}  // namespace crossover::cuda
