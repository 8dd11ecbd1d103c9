// SPDX-License-Identifier: Apache-2.0
#include "reduction.cuh"

#include "../grid.cuh"
#include "convert.cuh"

namespace crossover::cuda {
namespace {

/// A block takes 32 columns; its warps share the rows, so that a warp reads neighbours.
template <class T>
__global__ void column_sums_kernel(const T* matrix, std::int64_t rows, std::int64_t columns,
                                   bool accumulate, float* sums) {
  __shared__ float partial[block_threads];
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  const int warp = static_cast<int>(threadIdx.x) / warp_threads;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * warp_threads + lane;
  float sum = 0;
  if (column < columns) {
    for (std::int64_t row = warp; row < rows; row += block_warps) {
      sum += widen(matrix[row * columns + column]);
    }
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  if (warp == 0 && column < columns) {
    float total = accumulate ? sums[column] : 0.0F;
    for (int w = 0; w < block_warps; ++w) {
      total += partial[w * warp_threads + lane];
    }
    sums[column] = total;
  }
}

}  // namespace

void column_sums(cudaStream_t stream, Type type, const void* matrix, std::int64_t rows,
                 std::int64_t columns, bool accumulate, float* sums) {
  const auto blocks = static_cast<unsigned>((columns + warp_threads - 1) / warp_threads);
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    launch(column_sums_kernel<T>, {blocks, block_threads}, stream, static_cast<const T*>(matrix),
           rows, columns, accumulate, sums);
  });
}

}  // namespace crossover::cuda
