// SPDX-License-Identifier: Apache-2.0
// Stands in for src/cuda/kernels/device/launch.cuh: the same launches, onto the emulation.
#pragma once

#include <cuda_runtime.h>

#include <source_location>
#include <tuple>
#include <utility>

#include "base/runtime.h"

namespace crossover::cuda {

struct Grid {
  unsigned blocks = 1, threads = 1;
  unsigned shared_bytes = 0;
  unsigned networks = 1;
};

inline float* dynamic_shared() { return static_cast<float*>(cuda_host::dynamic_shared()); }

template <class... P>
void allow_shared_bytes(void (*kernel)(P...), unsigned bytes) {
  CROSSOVER_CUDA_CHECK(cuda_host::allow_shared_bytes(reinterpret_cast<const void*>(kernel), bytes));
}

template <class... P, class... A>
void launch(void (*kernel)(P...), Grid grid, cudaStream_t stream, A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter of the kernel");
  CROSSOVER_CUDA_CHECK(cuda_host::launch({.blocks = grid.blocks,
                                          .threads = grid.threads,
                                          .shared_bytes = grid.shared_bytes,
                                          .rows = grid.networks},
                                         kernel, std::tuple<P...>(std::forward<A>(args)...),
                                         stream));
}

template <class... P, class... A>
void launch_cooperative(void (*kernel)(P...), Grid grid, cudaStream_t stream, A&&... args) {
  CROSSOVER_CUDA_CHECK(cuda_host::launch({.blocks = grid.blocks,
                                          .threads = grid.threads,
                                          .shared_bytes = grid.shared_bytes,
                                          .cooperative = true},
                                         kernel, std::tuple<P...>(std::forward<A>(args)...),
                                         stream));
}

inline void grid_barrier(std::source_location where = std::source_location::current()) {
  cuda_host::grid_barrier(where);
}

constexpr bool has_clusters = true;
inline void cluster_barrier(std::source_location where = std::source_location::current()) {
  cuda_host::cluster_barrier(where);
}
inline int cluster_rank() { return static_cast<int>(cuda_host::cluster_rank()); }
inline float* shared_of(float* own, int rank,
                        std::source_location where = std::source_location::current()) {
  return static_cast<float*>(cuda_host::shared_of(own, static_cast<unsigned>(rank), where));
}

template <class... P, class... A>
void launch_clusters(void (*kernel)(P...), Grid grid, unsigned cluster_blocks, cudaStream_t stream,
                     A&&... args) {
  CROSSOVER_CUDA_CHECK(cuda_host::launch({.blocks = grid.blocks,
                                          .threads = grid.threads,
                                          .shared_bytes = grid.shared_bytes,
                                          .cluster_blocks = cluster_blocks},
                                         kernel, std::tuple<P...>(std::forward<A>(args)...),
                                         stream));
}

template <class... P>
int count_clusters(void (*kernel)(P...), Grid grid) {
  int clusters = 0;
  const cudaError_t status = cuda_host::active_clusters(&clusters,
                                                        {.blocks = grid.blocks,
                                                         .threads = grid.threads,
                                                         .shared_bytes = grid.shared_bytes,
                                                         .cluster_blocks = grid.blocks},
                                                        reinterpret_cast<const void*>(kernel));
  if (status == cudaErrorInvalidClusterSize || status == cudaErrorNotSupported) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  CROSSOVER_CUDA_CHECK(status);
  return clusters;
}

template <class... P>
int generation_of_code(void (*)(P...)) {
  return cuda_host::generation_of_code();
}

template <class... P>
cudaError_t find_code(void (*)(P...)) {
  return cuda_host::find_code();
}

}  // namespace crossover::cuda
