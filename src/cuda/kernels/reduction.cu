// SPDX-License-Identifier: Apache-2.0
#include "reduction.h"

#include "site.h"
#include "vectors.cuh"

namespace crossover::cuda {
namespace {

/// A block takes 32 columns, n of them with each thread, and a part of the rows, which its threads
/// share so that a warp reads neighbours. n divides the columns.
template <int n, class T>
__global__ void column_sums_kernel(const T* matrix, std::int64_t rows, std::int64_t columns,
                                   unsigned tiles, std::int64_t rows_of_a_part, bool accumulate,
                                   float* sums) {
  constexpr int across = warp_threads / n;  // threads
  constexpr int rows_at_once = block_threads / across;
  __shared__ float partial[rows_at_once * warp_threads];
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x % tiles) * warp_threads;
  const std::int64_t part = blockIdx.x / tiles;
  const std::int64_t end = (part + 1) * rows_of_a_part < rows ? (part + 1) * rows_of_a_part : rows;
  const int first = static_cast<int>(threadIdx.x) % across * n;  // of the thread's, in the tile
  const int own_row = static_cast<int>(threadIdx.x) / across;
  Neighbours<float, n> own{};
  if (tile + first < columns) {
    for (std::int64_t row = part * rows_of_a_part + own_row; row < end; row += rows_at_once) {
      const auto values = load<n>(matrix + row * columns + tile + first);
      for (int k = 0; k < n; ++k) {
        own.at[k] += values.at[k];
      }
    }
  }
  for (int k = 0; k < n; ++k) {
    partial[own_row * warp_threads + first + k] = own.at[k];
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  const int warp = static_cast<int>(threadIdx.x) / warp_threads;
  if constexpr (rows_at_once > block_warps) {  // by all warps, until one is enough
    float sum = 0;
    for (int row = warp; row < rows_at_once; row += block_warps) {
      sum += partial[row * warp_threads + lane];
    }
    __syncthreads();
    partial[threadIdx.x] = sum;
    __syncthreads();
  }
  const std::int64_t column = tile + lane;
  if (warp == 0 && column < columns) {
    sums += part * columns;
    float total = accumulate ? sums[column] : 0.0F;
    for (int w = 0; w < block_warps; ++w) {
      total += partial[w * warp_threads + lane];
    }
    sums[column] = total;
  }
}

/// A warp takes a row.
template <int n>
__global__ void row_sums_kernel(const float* matrix, std::int64_t rows, std::int64_t columns,
                                float* sums) {
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  for (std::int64_t row = thread_index() / warp_threads; row < rows;
       row += thread_count() / warp_threads) {
    float sum = 0;
    for_neighbours<n>(columns, lane, warp_threads, [&](auto some, std::int64_t i) {
      constexpr int m = decltype(some)::value;
      const auto values = load<m>(matrix + row * columns + i);
      for (int k = 0; k < m; ++k) {
        sum += values.at[k];
      }
    });
    for (int half = warp_threads / 2; half > 0; half /= 2) {
      sum += __shfl_xor_sync(all_lanes, sum, half);
    }
    if (lane == 0) {
      sums[row] = sum;
    }
  }
}

}  // namespace

void call(const ColumnSumsArguments<Called>& of, const Site& site) {
  const auto tiles = static_cast<unsigned>((of.columns + warp_threads - 1) / warp_threads);
  const Grid grid{tiles * static_cast<unsigned>(of.parts), block_threads};
  with_float(of.matrix.type, [&](auto zero) {
    using T = decltype(zero);
    constexpr int at_once = neighbours<T>;
    const bool aligned = of.columns % at_once == 0 && are_aligned({of.matrix});
    with_neighbours<at_once>(aligned, [&](auto some) {
      launch(column_sums_kernel<decltype(some)::value, T>, grid, site.stream, of.matrix, of.rows,
             of.columns, tiles, (of.rows + of.parts - 1) / of.parts, of.accumulate, of.sums);
    });
  });
}

void call(const RowSumsArguments<Called>& of, const Site& site) {
  constexpr int at_once = neighbours<float>;
  with_neighbours<at_once>(of.columns % at_once == 0 && are_aligned({of.matrix}), [&](auto some) {
    launch(row_sums_kernel<decltype(some)::value>, grid_for(of.rows * warp_threads), site.stream,
           of.matrix, of.rows, of.columns, of.sums);
  });
}

}  // namespace crossover::cuda
