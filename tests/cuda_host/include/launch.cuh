// SPDX-License-Identifier: Apache-2.0
// Stands in for src/cuda/device/launch.cuh: the same launches, onto the emulation.
#pragma once

#include <cuda_runtime.h>

#include <tuple>
#include <utility>

#include "runtime.h"

namespace crossover::cuda {

struct Grid {
  unsigned blocks = 1, threads = 1;
};

template <class... P, class... A>
void launch(void (*kernel)(P...), Grid grid, cudaStream_t stream, A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter of the kernel");
  CROSSOVER_CUDA_CHECK(cuda_host::launch(
      {.blocks = grid.blocks, .threads = grid.threads},
      cuda_host::bind(kernel, std::tuple<P...>(std::forward<A>(args)...)), stream));
}

template <class... P>
cudaError_t find_code(void (*)(P...)) {
  return cuda_host::find_code();
}

}  // namespace crossover::cuda
