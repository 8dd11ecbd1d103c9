// SPDX-License-Identifier: Apache-2.0
// What the jobs of the training kernel share: who computes what, vectors in shared memory, sums
// over lanes.
#pragma once

#include "grid.cuh"
#include "persistent.cuh"

// Loops over a tile must be unrolled, or its sums would lie in memory; others must not, or they
// would need too many registers.
#ifdef __CUDACC__
#define CROSSOVER_UNROLL _Pragma("unroll")
#define CROSSOVER_NO_UNROLL _Pragma("unroll 1")
// What is rare has its code in one place: at each product of each shape it would push what a step
// runs out of the instruction cache.
#define CROSSOVER_NO_INLINE __noinline__
#else
#define CROSSOVER_UNROLL
#define CROSSOVER_NO_UNROLL
#define CROSSOVER_NO_INLINE
#endif

namespace crossover::cuda::persistent {

constexpr int tile_columns = 4;

/// For a divisor that is known when this is compiled, and no negative numbers.
inline __device__ int ceil_div(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a + b - 1) / static_cast<unsigned>(b));
}

/// Warps that share out the tasks of jobs: how many, and which of them this is. Where the count may
/// be any, a division of each job finds the first task, which a barrier of all blocks outweighs.
template <bool power_of_two>
struct Warps {
  int count, number;

  /// This warp's first task in a job behind `taken` warp tasks since the barrier: so small jobs
  /// between two barriers meet different warps.
  __device__ int first_task_after(int taken) const {
    if constexpr (power_of_two) {
      return (number - taken) & (count - 1);
    } else {
      const int first = (number - taken) % count;
      return first < 0 ? first + count : first;
    }
  }
};

/// A step as one warp sees it. Row b of the batch lies in memory b % memories of the team's
/// (persistent.cu) as its row b / memories.
template <class Team>
struct Block {
  const PersistentArguments& of;
  float* shared;                            ///< the own memory
  Warps<Team::has_power_of_two> of_memory;  ///< that share it
  Warps<Team::has_power_of_two> of_team;
  std::int64_t shift;  ///< TrainingArguments::shifts
  int lane;
  int rank, memories_log2;
  std::int64_t run;
  int step, batch;
  int most_rows;  ///< of the batch in a memory
  int buffer;     // of the two that batches come in by turns

  /// Of the batch in the own memory.
  __device__ int rows() const { return rows_of(batch, rank, memories_log2); }
  /// The row of the batch that is row `at` here.
  __device__ int row_of(int at) const { return (at << memories_log2) | rank; }
  __device__ const float* memory_of_row(int b) const {
    return Team::memory_of(shared, b & ((1 << memories_log2) - 1));
  }
  /// Which row of its memory it is.
  __device__ int place_of_row(int b) const { return b >> memories_log2; }

  /// Where a layer's input is in each memory. The first layer's is the batch.
  __device__ int x(const OnChipLayer& layer, int number) const {
    return layer.x + (number == 0 ? buffer * of.places.inputs : 0);
  }
  /// Labels, or targets in whose place they lie.
  __device__ const float* wanted() const {
    return shared + of.places.wanted + buffer * of.places.wanted_next;
  }

  static __device__ int rows_of(int batch, int rank, int memories_log2) {
    return (batch + (1 << memories_log2) - 1 - rank) >> memories_log2;
  }
};

/// The same of another copy of the training.
template <class T>
__device__ T* shifted(T* of_first, std::int64_t shift) {
  return reinterpret_cast<T*>(reinterpret_cast<std::intptr_t>(of_first) + shift);
}

/// How many warp tasks a job with so many tiles is.
inline __device__ int tasks_of(int tiles, int lanes_log2) {
  return ceil_div(tiles << lanes_log2, warp_threads);
}

/// The part of a tile of results that a lane has in a task: with `lanes` to a tile, the terms
/// part, part + lanes, ... of its sums. Lanes beyond the last tile compute that one again, for
/// shuffles are of whole warps, and store nothing.
struct Share {
  int tile, part;
  bool exists;
};
inline __device__ Share share_of(int task, int lane, int lanes_log2, int tiles) {
  const int thread = task * warp_threads + lane;
  const int tile = thread >> lanes_log2;
  return {tile < tiles ? tile : tiles - 1, thread & ((1 << lanes_log2) - 1), tile < tiles};
}

inline __device__ float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }
inline __device__ void store4(float* to, const float4& v) { *reinterpret_cast<float4*>(to) = v; }

inline __device__ void add_product(float4& sum, float a, const float4& b) {
  sum.x = std::fma(a, b.x, sum.x);
  sum.y = std::fma(a, b.y, sum.y);
  sum.z = std::fma(a, b.z, sum.z);
  sum.w = std::fma(a, b.w, sum.w);
}

inline __device__ float dot(const float4& a, const float4& b, float sum) {
  sum = std::fma(a.x, b.x, sum);
  sum = std::fma(a.y, b.y, sum);
  sum = std::fma(a.z, b.z, sum);
  return std::fma(a.w, b.w, sum);
}

/// The lanes' parts of a tile's sums put together, in every one of them to the same bits: in a
/// fixed order, so that a run repeats.
template <int rows>
__device__ void sum_over_lanes(float4 (&sum)[rows], int lanes) {
  for (int apart = 1; apart < lanes; apart *= 2) {
    CROSSOVER_UNROLL
    for (int r = 0; r < rows; ++r) {
      sum[r].x += __shfl_xor_sync(all_lanes, sum[r].x, apart);
      sum[r].y += __shfl_xor_sync(all_lanes, sum[r].y, apart);
      sum[r].z += __shfl_xor_sync(all_lanes, sum[r].z, apart);
      sum[r].w += __shfl_xor_sync(all_lanes, sum[r].w, apart);
    }
  }
}

/// Whether the lane is the one that ends with row r of its tile. r is known to the compiler, so
/// that sums stay in registers.
inline __device__ bool ends_with(int r, int part, int lanes) { return (r & (lanes - 1)) == part; }

/// The first `columns - column` of a vector to a dense matrix in the device's memory.
inline __device__ void keep4(float* row, int column, int columns, const float4& v) {
  const float values[tile_columns] = {v.x, v.y, v.z, v.w};
  CROSSOVER_UNROLL
  for (int c = 0; c < tile_columns; ++c) {
    if (column + c < columns) {
      row[column + c] = values[c];
    }
  }
}

}  // namespace crossover::cuda::persistent
