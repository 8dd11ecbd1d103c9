// SPDX-License-Identifier: Apache-2.0
// The one place where kernels are launched. It has a directory of its own on the include path, so
// that another launcher can stand in for it.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <tuple>
#include <utility>

#include "../runtime.h"

namespace crossover::cuda {

struct Grid {
  unsigned blocks = 1, threads = 1;
  unsigned shared_bytes = 0;  // of dynamic_shared(); beyond 48 KB, see allow_shared_bytes()
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
                                              dim3(grid.blocks), dim3(grid.threads),
                                              pointers.data(), grid.shared_bytes, stream));
      },
      values);
}

/// cudaSuccess where the program holds the kernel's code for the current device.
template <class... P>
cudaError_t find_code(void (*kernel)(P...)) {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
}

}  // namespace crossover::cuda
