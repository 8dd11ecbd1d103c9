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
  unsigned shared_bytes = 0;
};

inline float* dynamic_shared() { return static_cast<float*>(cuda_host::dynamic_shared()); }

template <class... P>
void allow_shared_bytes(void (*kernel)(P...), unsigned bytes) {
  CROSSOVER_CUDA_CHECK(cuda_host::allow_shared_bytes(reinterpret_cast<const void*>(kernel), bytes));
}

template <class... P, class... A>
void launch(void (*kernel)(P...), Grid grid, cudaStream_t stream, A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter of the kernel");
  CROSSOVER_CUDA_CHECK(cuda_host::launch(
      {.blocks = grid.blocks, .threads = grid.threads, .shared_bytes = grid.shared_bytes},
      cuda_host::bind(kernel, std::tuple<P...>(std::forward<A>(args)...)), stream));
}

template <class... P>
cudaError_t find_code(void (*)(P...)) {
  return cuda_host::find_code();
}

}  // namespace crossover::cuda
