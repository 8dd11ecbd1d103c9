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
};

template <class... P, class... A>
void launch(void (*kernel)(P...), Grid grid, cudaStream_t stream, A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter of the kernel");
  std::tuple<P...> values(std::forward<A>(args)...);  // of exactly the types that the kernel takes
  std::apply(
      [&](auto&... value) {
        std::array<void*, sizeof...(P)> pointers{&value...};
        CROSSOVER_CUDA_CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel),
                                              dim3(grid.blocks), dim3(grid.threads),
                                              pointers.data(), 0, stream));
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
