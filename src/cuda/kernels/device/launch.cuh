// SPDX-License-Identifier: Apache-2.0
// The one place where kernels are launched. It has a directory of its own on the include path, so
// that another launcher can stand in for it.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <array>
#include <tuple>
#include <utility>

#include "../../base/runtime.h"

namespace crossover::cuda {

struct Grid {
  unsigned blocks = 1, threads = 1;
  unsigned shared_bytes = 0;  // of dynamic_shared(); beyond 48 KB, see allow_shared_bytes()
  unsigned networks = 1;      // each has so many blocks
};

/// What a launch's shared_bytes give to each block, at multiples of 16 bytes.
__device__ inline float* dynamic_shared() {
  extern __shared__ float4 memory_of_the_launch[];
  return reinterpret_cast<float*>(memory_of_the_launch);
}

/// Lets a kernel's blocks have so much shared memory.
template <class... P>
void allow_shared_bytes(void (*kernel)(P...), unsigned bytes) {
  CROSSOVER_CUDA_CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                            cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(bytes)));
}

template <class... P, class... A>
void launch(void (*kernel)(P...), Grid grid, cudaStream_t stream, A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter of the kernel");
  std::tuple<P...> values(std::forward<A>(args)...);  // of exactly the types that the kernel takes
  std::apply(
      [&](auto&... value) {
        std::array<void*, sizeof...(P)> pointers{&value...};
        CROSSOVER_CUDA_CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel),
                                              dim3(grid.blocks, grid.networks), dim3(grid.threads),
                                              pointers.data(), grid.shared_bytes, stream));
      },
      values);
}

/// The same with blocks that wait for each other (grid_barrier()): at most as many as run at once.
template <class... P, class... A>
void launch_cooperative(void (*kernel)(P...), Grid grid, cudaStream_t stream, A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter of the kernel");
  std::tuple<P...> values(std::forward<A>(args)...);
  std::apply(
      [&](auto&... value) {
        std::array<void*, sizeof...(P)> pointers{&value...};
        CROSSOVER_CUDA_CHECK(cudaLaunchCooperativeKernel(
            reinterpret_cast<const void*>(kernel), dim3(grid.blocks), dim3(grid.threads),
            pointers.data(), grid.shared_bytes, stream));
      },
      values);
}

/// Of all threads of a cooperative launch, which then see what any of them wrote.
__device__ inline void grid_barrier() { cooperative_groups::this_grid().sync(); }

/// Blocks that run at once on neighbouring multiprocessors and reach each other's shared memory: of
/// compute capability 9.0 and later. Each call must stand where the code is made for those alone.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
constexpr bool has_clusters = true;
/// Of all threads of the cluster, which then see what any of them wrote.
__device__ inline void cluster_barrier() { cooperative_groups::this_cluster().sync(); }
__device__ inline int cluster_rank() {
  return static_cast<int>(cooperative_groups::this_cluster().block_rank());
}
/// The same place in the shared memory of the cluster's block `rank`.
__device__ inline float* shared_of(float* own, int rank) {
  return cooperative_groups::this_cluster().map_shared_rank(own, static_cast<unsigned>(rank));
}
#else
constexpr bool has_clusters = false;
__device__ inline void cluster_barrier() {}
__device__ inline int cluster_rank() { return 0; }
__device__ inline float* shared_of(float* own, int /*rank*/) { return own; }
#endif

/// A launch of clusters of so many blocks.
class ClusterLaunch {
 public:
  ClusterLaunch(Grid grid, unsigned cluster_blocks, cudaStream_t stream) {
    attribute_.id = cudaLaunchAttributeClusterDimension;
    attribute_.val.clusterDim.x = cluster_blocks;
    attribute_.val.clusterDim.y = 1;
    attribute_.val.clusterDim.z = 1;
    config_.gridDim = dim3(grid.blocks);
    config_.blockDim = dim3(grid.threads);
    config_.dynamicSmemBytes = grid.shared_bytes;
    config_.stream = stream;
    config_.attrs = &attribute_;
    config_.numAttrs = 1;
  }
  ClusterLaunch(const ClusterLaunch&) = delete;
  ClusterLaunch& operator=(const ClusterLaunch&) = delete;

  [[nodiscard]] const cudaLaunchConfig_t* get() const { return &config_; }

 private:
  cudaLaunchAttribute attribute_{};
  cudaLaunchConfig_t config_{};
};

/// The grid is clusters, each of a size of which count_clusters() finds any.
template <class... P, class... A>
void launch_clusters(void (*kernel)(P...), Grid grid, unsigned cluster_blocks, cudaStream_t stream,
                     A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter of the kernel");
  std::tuple<P...> values(std::forward<A>(args)...);
  const ClusterLaunch clusters(grid, cluster_blocks, stream);
  std::apply(
      [&](auto&... value) {
        std::array<void*, sizeof...(P)> pointers{&value...};
        CROSSOVER_CUDA_CHECK(cudaLaunchKernelExC(
            clusters.get(), reinterpret_cast<const void*>(kernel), pointers.data()));
      },
      values);
}

/// How many grids, each as one cluster, the device has room for at once. Throws as calls of CUDA
/// do, but not where the answer is that it has no clusters, or none of that size.
template <class... P>
int count_clusters(void (*kernel)(P...), Grid grid) {
  int clusters = 0;
  const cudaError_t status =
      cudaOccupancyMaxActiveClusters(&clusters, reinterpret_cast<const void*>(kernel),
                                     ClusterLaunch(grid, grid.blocks, nullptr).get());
  if (status == cudaErrorInvalidClusterSize || status == cudaErrorNotSupported) {
    static_cast<void>(cudaGetLastError());  // not for whoever asks next
    return 0;
  }
  CROSSOVER_CUDA_CHECK(status);
  return clusters;
}

/// 90 where the kernel's code was made for compute capability 9.0. The driver may have translated
/// what was made for an earlier one, which lacks what that one lacks.
template <class... P>
int generation_of_code(void (*kernel)(P...)) {
  cudaFuncAttributes attributes{};
  CROSSOVER_CUDA_CHECK(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)));
  return std::min(attributes.binaryVersion, attributes.ptxVersion);
}

/// cudaSuccess where the program holds the kernel's code for the current device.
template <class... P>
cudaError_t find_code(void (*kernel)(P...)) {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
}

}  // namespace crossover::cuda
