// SPDX-License-Identifier: Apache-2.0
#include "probes.h"

#include <cmath>

#include "../../probe/expected.h"
#include "../kernels/grid.cuh"
#include "convert.cuh"

namespace crossover::cuda {
namespace {

__global__ void empty_kernel() {}

/// Chains of one thread that do not wait for each other; the other threads hide the rest.
constexpr int fma_chains = 4;

/// A block takes neighbouring values, each thread those that are block_threads apart.
__global__ void fma_kernel(std::int64_t values, std::int64_t length, float factor, float summand,
                           float* results) {
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * (block_threads * fma_chains) + threadIdx.x;
  float x[fma_chains];
  for (int i = 0; i < fma_chains; ++i) {
    x[i] = probe::fma_start(first + i * block_threads);
  }
  const auto steps = [&](int count) {
    for (int step = 0; step < count; ++step) {
      for (int i = 0; i < fma_chains; ++i) {
        x[i] = std::fma(x[i], factor, summand);
      }
    }
  };
  constexpr int unrolled = 32;  // so that the loop itself costs next to nothing
  std::int64_t left = length;
  for (; left >= unrolled; left -= unrolled) {
    steps(unrolled);
  }
  steps(static_cast<int>(left));
  for (int i = 0; i < fma_chains; ++i) {
    const std::int64_t position = first + i * block_threads;
    if (position < values) {
      results[position] = x[i];
    }
  }
}

__global__ void triad_kernel(const float* b, const float* c, float* a, std::int64_t values) {
  const auto* b4 = reinterpret_cast<const float4*>(b);
  const auto* c4 = reinterpret_cast<const float4*>(c);
  auto* a4 = reinterpret_cast<float4*>(a);
  const std::int64_t fours = values / 4;
  constexpr float s = probe::triad_factor;
  for (std::int64_t i = thread_index(); i < fours; i += thread_count()) {
    const float4 x = b4[i];
    const float4 y = c4[i];
    a4[i] = make_float4(x.x + s * y.x, x.y + s * y.y, x.z + s * y.z, x.w + s * y.w);
  }
  for (std::int64_t i = 4 * fours + thread_index(); i < values; i += thread_count()) {
    a[i] = b[i] + s * c[i];
  }
}

__global__ void fill_triad_kernel(float* b, float* c, std::int64_t values) {
  for (std::int64_t i = thread_index(); i < values; i += thread_count()) {
    b[i] = probe::triad_b(i);
    c[i] = probe::triad_c(i);
  }
}

template <class T>
__global__ void fill_matrices_kernel(T* a, T* b, std::int64_t size) {
  for (std::int64_t i = thread_index(); i < size * size; i += thread_count()) {
    a[i] = narrow<T>(probe::matrix_a(i / size, i % size));
    b[i] = narrow<T>(probe::matrix_b(i / size, i % size));
  }
}

}  // namespace

void empty(cudaStream_t stream) { launch(empty_kernel, {1, 1}, stream); }

void fma(cudaStream_t stream, std::int64_t values, std::int64_t length, float* results) {
  constexpr std::int64_t of_a_block = std::int64_t{block_threads} * fma_chains;
  const auto blocks = static_cast<unsigned>((values + of_a_block - 1) / of_a_block);
  launch(fma_kernel, {blocks, block_threads}, stream, values, length, probe::fma_factor,
         probe::fma_summand, results);
}

void triad(cudaStream_t stream, const float* b, const float* c, float* a, std::int64_t values) {
  launch(triad_kernel, grid_for(values / 4), stream, b, c, a, values);
}

void fill_triad(cudaStream_t stream, float* b, float* c, std::int64_t values) {
  launch(fill_triad_kernel, grid_for(values), stream, b, c, values);
}

void fill_matrices(cudaStream_t stream, Type type, void* a, void* b, std::int64_t size) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    launch(fill_matrices_kernel<T>, grid_for(size * size), stream, static_cast<T*>(a),
           static_cast<T*>(b), size);
  });
}

}  // namespace crossover::cuda
