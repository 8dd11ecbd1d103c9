// SPDX-License-Identifier: Apache-2.0
// Who trains, and where: one block in its shared memory; a cluster's blocks in theirs, each with
// all parameters and with the rows of a batch that are its own; or all blocks of a cooperative
// launch in a workspace.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "persistent_block.cuh"

namespace crossover::cuda::persistent {

struct OneBlock {
  static constexpr bool exists = true;
  static constexpr bool is_spread = false;        ///< over several memories
  static constexpr bool has_power_of_two = true;  ///< of warps
  static __device__ float* memory(const PersistentArguments& /*of*/) { return dynamic_shared(); }
  /// Of those that share a memory.
  static __device__ int thread() { return static_cast<int>(threadIdx.x); }
  static __device__ int threads() { return static_cast<int>(blockDim.x); }
  static __device__ void barrier() { __syncthreads(); }
  /// Of four bytes, which are there after wait_for_copies() and a barrier.
  template <class T>
  static __device__ void copy(T* to, const T* from) {
    __pipeline_memcpy_async(to, from, sizeof(T));
  }
  static __device__ void commit_copies() { __pipeline_commit(); }
  static __device__ void wait_for_copies() { __pipeline_wait_prior(0); }

  /// Which of the memories this one is, and two to which power there are.
  static __device__ int rank() { return 0; }
  static __device__ int memories_log2(const PersistentArguments& /*of*/) { return 0; }
  static __device__ float* memory_of(float* own, int /*rank*/) { return own; }
  static __device__ void barrier_of_all() { __syncthreads(); }
};

/// Its barriers make what any block wrote visible to all.
struct WholeGrid {
  static constexpr bool exists = true;
  static constexpr bool is_spread = false;
  static constexpr bool has_power_of_two = false;
  static __device__ float* memory(const PersistentArguments& of) { return of.workspace; }
  static __device__ int thread() { return static_cast<int>(thread_index()); }
  static __device__ int threads() { return static_cast<int>(thread_count()); }
  static __device__ void barrier() { grid_barrier(); }
  template <class T>
  static __device__ void copy(T* to, const T* from) {
    *to = *from;
  }
  static __device__ void commit_copies() {}
  static __device__ void wait_for_copies() {}
  static __device__ int rank() { return 0; }
  static __device__ int memories_log2(const PersistentArguments& /*of*/) { return 0; }
  static __device__ float* memory_of(float* own, int /*rank*/) { return own; }
  static __device__ void barrier_of_all() { grid_barrier(); }
};

/// Its blocks read each other's parts of gradients and losses of rows, and write each other's
/// parameters, between barriers of all.
struct Cluster : OneBlock {
  static constexpr bool exists = has_clusters;
  static constexpr bool is_spread = true;
  static __device__ int rank() { return cluster_rank(); }
  static __device__ int memories_log2(const PersistentArguments& of) { return of.memories_log2; }
  static __device__ float* memory_of(float* own, int rank) { return shared_of(own, rank); }
  static __device__ void barrier_of_all() { cluster_barrier(); }
};

}  // namespace crossover::cuda::persistent
