// SPDX-License-Identifier: Apache-2.0
// What the code of a kernel sees: its place in the grid, barriers, shuffles, shared memory.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <span>
#include <type_traits>

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): these are CUDA's names
#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __grid_constant__
// One block runs at a time, so a variable in static storage is the block's own. shared_memory.cpp
// fills it with garbage before each block. Blocks of clusters and cooperative launches have none.
#define __shared__ static

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)  // NOLINT: implicit in CUDA
      : x(x_), y(y_), z(z_) {}
};

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace cuda_host {

/// Where an argument of a kernel lies.
struct Argument {
  const void* at = nullptr;
  std::size_t bytes = 0;
  bool is_pointer = false;  ///< then never one to the host's memory
};

/// A kernel and its arguments, as long as the call lasts. There are hundreds of kernels: what each
/// of them is compiled for anew is no more than this.
struct Call {
  const void* function = nullptr;
  void (*thread)(const void* bound) = nullptr;  ///< one of its threads
  const void* bound = nullptr;                  ///< the function and its arguments
  std::size_t bytes = 0;                        ///< of these
  std::span<const Argument> arguments;
};

/// Waits for the block; `where` tells barriers apart, so that threads that wait at different ones
/// are found.
void barrier(const std::source_location& where);
/// The same for all blocks of a cooperative launch.
void grid_barrier(const std::source_location& where);
/// The same for all blocks of a cluster.
void cluster_barrier(const std::source_location& where);
/// Which of its blocks.
unsigned cluster_rank();
/// What `own`, in the block's dynamic shared memory, is in that of the cluster's block `rank`.
void* shared_of(void* own, unsigned rank, const std::source_location& where);

/// Waits for the warp and returns lane `source`'s value.
std::uint64_t exchange(unsigned mask, std::uint64_t value, unsigned source,
                       const std::source_location& where);
unsigned lane();

template <class T>
T shuffle(unsigned mask, T value, unsigned source, const std::source_location& where) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, source, where);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace cuda_host

inline void __syncthreads(std::source_location where = std::source_location::current()) {
  cuda_host::barrier(where);
}

// A lane whose source falls outside its group of `width` lanes gets its own value, as in CUDA.

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize,
              std::source_location where = std::source_location::current()) {
  const unsigned lane = cuda_host::lane();
  const auto group = static_cast<unsigned>(width);
  return cuda_host::shuffle(mask, value,
                            lane / group * group + static_cast<unsigned>(source) % group, where);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   std::source_location where = std::source_location::current()) {
  const unsigned lane = cuda_host::lane();
  const auto group = static_cast<unsigned>(width);
  return cuda_host::shuffle(mask, value, lane % group + delta < group ? lane + delta : lane, where);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize,
                  std::source_location where = std::source_location::current()) {
  const unsigned lane = cuda_host::lane();
  const auto group = static_cast<unsigned>(width);
  const unsigned source = lane ^ static_cast<unsigned>(bits);
  return cuda_host::shuffle(mask, value, source / group <= lane / group ? source : lane, where);
}

inline unsigned __ballot_sync(unsigned mask, bool predicate,
                              std::source_location where = std::source_location::current()) {
  unsigned votes = predicate ? 1U << cuda_host::lane() : 0U;
  for (int bits = warpSize / 2; bits > 0; bits /= 2) {
    votes |= __shfl_xor_sync(mask, votes, bits, warpSize, where);
  }
  return votes;
}

/// A store, by one instruction.
inline void __stwb(uint4* to, uint4 value) { std::memcpy(to, &value, sizeof(value)); }

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
