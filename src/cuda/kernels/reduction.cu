// SPDX-License-Identifier: Apache-2.0
#include "reduction.cuh"

#include "../grid.cuh"
#include "convert.cuh"

namespace crossover::cuda {
namespace {

/// A block takes 32 columns and a part of the rows, which its warps share, so that a warp reads
/// neighbours.
template <class T>
__global__ void column_sums_kernel(const T* matrix, std::int64_t rows, std::int64_t columns,
                                   unsigned tiles, std::int64_t rows_of_a_part, bool accumulate,
                                   float* sums) {
  __shared__ float partial[block_threads];
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  const int warp = static_cast<int>(threadIdx.x) / warp_threads;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x % tiles) * warp_threads + lane;
  const std::int64_t part = blockIdx.x / tiles;
  const std::int64_t end = (part + 1) * rows_of_a_part < rows ? (part + 1) * rows_of_a_part : rows;
  float sum = 0;
  if (column < columns) {
    for (std::int64_t row = part * rows_of_a_part + warp; row < end; row += block_warps) {
      sum += widen(matrix[row * columns + column]);
    }
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (warp == 0 && column < columns) {
    sums += part * columns;
    float total = accumulate ? sums[column] : 0.0F;
    for (int w = 0; w < block_warps; ++w) {
      total += partial[w * warp_threads + lane];
    }
    sums[column] = total;
  }
}

}  // namespace

void column_sums(cudaStream_t stream, Type type, const void* matrix, std::int64_t rows,
                 std::int64_t columns, std::int64_t parts, bool accumulate, float* sums) {
  const auto tiles = static_cast<unsigned>((columns + warp_threads - 1) / warp_threads);
  const Grid grid{tiles * static_cast<unsigned>(parts), block_threads};
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    launch(column_sums_kernel<T>, grid, stream, static_cast<const T*>(matrix), rows, columns, tiles,
           (rows + parts - 1) / parts, accumulate, sums);
  });
}

}  // namespace crossover::cuda
