// SPDX-License-Identifier: Apache-2.0
// Who trains, and where: one block in its shared memory, or all blocks of a cooperative launch in a
// workspace.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "persistent_block.cuh"

namespace crossover::cuda::persistent {

struct OneBlock {
  static __device__ float* memory(const PersistentArguments& /*of*/) { return dynamic_shared(); }
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
};

/// Its barriers make what any block wrote visible to all.
struct WholeGrid {
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
};

}  // namespace crossover::cuda::persistent
