// SPDX-License-Identifier: Apache-2.0
#include "reshape.cuh"

#include "grid.cuh"

namespace crossover::cuda {
namespace {

/// Of two dimensions that a thread swaps; 1 and 1 leaves them as they are.
struct Swap {
  std::int64_t outer = 1, inner = 1;
};

__device__ std::int64_t through(std::int64_t i, const Swap& swap) {
  return swap.outer == 1 || swap.inner == 1 ? i : swapped(i, swap.outer, swap.inner);
}

/// Neighbouring threads write neighbours, and read apart.
template <class T>
__global__ void reshape_kernel(const T* x, T* y, std::int64_t count, Swap to_plain,
                               Swap from_plain) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    y[i] = x[through(through(i, to_plain), from_plain)];
  }
}

__global__ void zero_kernel(float* to, std::int64_t count) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    to[i] = 0;
  }
}

template <class T>
void launch_reshape(cudaStream_t stream, const void* x, void* y, std::int64_t count,
                    const Arrangement& from, const Arrangement& to) {
  launch(reshape_kernel<T>, grid_for(count), stream, static_cast<const T*>(x), static_cast<T*>(y),
         count, Swap{to.pixels, to.channels}, Swap{from.channels, from.pixels});
}

}  // namespace

void reshape(cudaStream_t stream, std::int64_t element_bytes, const void* x, void* y,
             std::int64_t count, const Arrangement& from, const Arrangement& to) {
  if (element_bytes == sizeof(std::uint16_t)) {
    launch_reshape<std::uint16_t>(stream, x, y, count, from, to);
  } else {
    launch_reshape<std::uint32_t>(stream, x, y, count, from, to);
  }
}

void zero(cudaStream_t stream, float* to, std::int64_t count) {
  launch(zero_kernel, grid_for(count), stream, to, count);
}

}  // namespace crossover::cuda
