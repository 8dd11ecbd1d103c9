// SPDX-License-Identifier: Apache-2.0
#include "dropout.cuh"

#include "convert.cuh"
#include "crossover/random.h"
#include "grid.cuh"

namespace crossover::cuda {
namespace {

__global__ void count_up_kernel(std::int32_t* counter) { *counter += 1; }

template <class T>
__global__ void dropout_kernel(const T* x, T* y, std::int64_t count, Arrangement arrangement,
                               double probability, float factor, std::int64_t seed,
                               const std::int32_t* step) {
  const std::int32_t time = *step;
  const bool is_plain = arrangement.channels == 1 || arrangement.pixels == 1;
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t element =
        is_plain ? i : swapped(i, arrangement.pixels, arrangement.channels);
    const bool keeps =
        dropout_uniform(seed, time, static_cast<std::uint64_t>(element)) >= probability;
    y[i] = narrow<T>(keeps ? widen(x[i]) * factor : 0.0F);
  }
}

}  // namespace

void count_up(cudaStream_t stream, std::int32_t* counter) {
  launch(count_up_kernel, {1, 1}, stream, counter);
}

void dropout(cudaStream_t stream, Type type, const void* x, void* y, std::int64_t count,
             const Arrangement& arrangement, double probability, std::int64_t seed,
             const std::int32_t* step) {
  const auto factor = static_cast<float>(1 / (1 - probability));
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    launch(dropout_kernel<T>, grid_for(count), stream, static_cast<const T*>(x), static_cast<T*>(y),
           count, arrangement, probability, factor, seed, step);
  });
}

}  // namespace crossover::cuda
