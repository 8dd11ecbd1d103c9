// SPDX-License-Identifier: Apache-2.0
// Correct and simple: of a tile of 32 by 32 results each thread has four, whose factors lie in
// shared memory, in rows that are a number longer, so that threads read from different banks.
#include "matmul.h"

#include <cfloat>
#include <cmath>

#include "convert.cuh"
#include "site.h"
#include "warp.cuh"

namespace crossover::cuda {
namespace {

constexpr int product_tile = 32;
constexpr int product_tile_row = product_tile + 1;  ///< in shared memory
constexpr int results_of_thread = product_tile * product_tile / block_threads;

/// By all threads: rows and columns from `row` and `column` on, zeros behind their ends.
/// Neighbouring threads read neighbours.
template <class T>
__device__ void load_tile(const T* from, const MatrixSteps& steps, std::int64_t row,
                          std::int64_t rows, std::int64_t column, std::int64_t columns, float* to) {
  for (int i = static_cast<int>(threadIdx.x); i < product_tile * product_tile; i += block_threads) {
    const bool by_row = steps.column == 1;
    const int r = by_row ? i / product_tile : i % product_tile;
    const int c = by_row ? i % product_tile : i / product_tile;
    const bool is_there = row + r < rows && column + c < columns;
    to[r * product_tile_row + c] =
        is_there ? widen(from[(row + r) * steps.row + (column + c) * steps.column]) : 0.0F;
  }
}

template <class T>
__global__ void matmul_kernel(MatmulArguments<Called> of) {
  const MatmulSizes sizes = of.sizes;
  __shared__ float tile_a[product_tile * product_tile_row];
  __shared__ float tile_b[product_tile * product_tile_row];
  const std::int64_t across = (sizes.n + product_tile - 1) / product_tile;
  const std::int64_t tiles = (sizes.m + product_tile - 1) / product_tile * across;
  const int column = static_cast<int>(threadIdx.x) % product_tile;
  const int first_row = static_cast<int>(threadIdx.x) / product_tile * results_of_thread;
  for (std::int64_t block = blockIdx.x; block < sizes.samples * sizes.heads * tiles;
       block += gridDim.x) {
    const std::int64_t matrix = block / tiles;
    const auto first = [&](const MatrixSteps& steps) {
      return matrix / sizes.heads * steps.sample + matrix % sizes.heads * steps.head;
    };
    const T* a = static_cast<const T*>(of.a) + first(sizes.a);
    const T* b = static_cast<const T*>(of.b) + first(sizes.b);
    T* y = static_cast<T*>(of.y) + first(sizes.y);
    const std::int64_t row_of_tile = block % tiles / across * product_tile;
    const std::int64_t column_of_tile = block % tiles % across * product_tile;
    float sums[results_of_thread] = {};
    for (std::int64_t k = 0; k < sizes.k; k += product_tile) {
      load_tile(a, sizes.a, row_of_tile, sizes.m, k, sizes.k, tile_a);
      load_tile(b, sizes.b, k, sizes.k, column_of_tile, sizes.n, tile_b);
      __syncthreads();
      for (int i = 0; i < product_tile; ++i) {
        const float factor = tile_b[i * product_tile_row + column];
        for (int r = 0; r < results_of_thread; ++r) {
          sums[r] += tile_a[(first_row + r) * product_tile_row + i] * factor;
        }
      }
      __syncthreads();
    }
    for (int r = 0; r < results_of_thread; ++r) {
      const std::int64_t m = row_of_tile + first_row + r;
      const std::int64_t n = column_of_tile + column;
      if (m < sizes.m && n < sizes.n) {
        y[m * sizes.y.row + n * sizes.y.column] = narrow<T>(of.scale * sums[r]);
      }
    }
  }
}

template <class T>
__global__ void softmax_kernel(SoftmaxArguments<Called> of) {
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  for (std::int64_t part = thread_index() / warp_threads; part < of.parts;
       part += thread_count() / warp_threads) {
    const T* x = static_cast<const T*>(of.x) + part * of.keys;
    T* y = static_cast<T*>(of.y) + part * of.keys;
    const std::int64_t place = of.parts_of_a_place > 0 ? part / of.parts_of_a_place + 1 : of.keys;
    const std::int64_t seen = place < of.keys ? place : of.keys;
    float largest = -FLT_MAX;
    for (std::int64_t i = lane; i < seen; i += warp_threads) {
      largest = std::fmax(largest, widen(x[i]));
    }
    largest = group_max(largest);
    float sum = 0;
    for (std::int64_t i = lane; i < seen; i += warp_threads) {
      sum += std::exp(widen(x[i]) - largest);
    }
    const float inverse = 1 / group_sum(sum);
    for (std::int64_t i = lane; i < of.keys; i += warp_threads) {
      y[i] = narrow<T>(i < seen ? std::exp(widen(x[i]) - largest) * inverse : 0.0F);
    }
  }
}

template <class T>
__global__ void softmax_grad_kernel(SoftmaxGradArguments<Called> of) {
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  for (std::int64_t part = thread_index() / warp_threads; part < of.parts;
       part += thread_count() / warp_threads) {
    const T* y = static_cast<const T*>(of.y) + part * of.keys;
    const T* dy = static_cast<const T*>(of.dy) + part * of.keys;
    T* dx = static_cast<T*>(of.dx) + part * of.keys;
    float sum = 0;
    for (std::int64_t i = lane; i < of.keys; i += warp_threads) {
      sum += widen(y[i]) * widen(dy[i]);
    }
    sum = group_sum(sum);
    for (std::int64_t i = lane; i < of.keys; i += warp_threads) {
      dx[i] = narrow<T>(widen(y[i]) * (widen(dy[i]) - sum));
    }
  }
}

}  // namespace

void call(const MatmulArguments<Called>& of, const Site& site) {
  const MatmulSizes& sizes = of.sizes;
  const std::int64_t tiles =
      (sizes.m + product_tile - 1) / product_tile * ((sizes.n + product_tile - 1) / product_tile);
  const Grid grid = grid_for(sizes.samples * sizes.heads * tiles * block_threads);
  with_float(of.y.type,
             [&](auto zero) { launch(matmul_kernel<decltype(zero)>, grid, site.stream, of); });
}

void call(const SoftmaxArguments<Called>& of, const Site& site) {
  with_float(of.y.type, [&](auto zero) {
    launch(softmax_kernel<decltype(zero)>, grid_for(of.parts * warp_threads), site.stream, of);
  });
}

void call(const SoftmaxGradArguments<Called>& of, const Site& site) {
  with_float(of.dx.type, [&](auto zero) {
    launch(softmax_grad_kernel<decltype(zero)>, grid_for(of.parts * warp_threads), site.stream, of);
  });
}

}  // namespace crossover::cuda
