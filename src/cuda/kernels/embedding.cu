// SPDX-License-Identifier: Apache-2.0
#include "embedding.cuh"

#include "convert.cuh"
#include "grid.cuh"

namespace crossover::cuda {
namespace {

template <class T>
__global__ void embedding_kernel(const std::int32_t* tokens, const T* table, T* y,
                                 std::int64_t batch, std::int64_t time, std::int64_t width) {
  const std::int64_t count = time * batch * width;
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t position = i / width;
    const std::int64_t token = tokens[position % batch * time + position / batch];
    y[i] = table[token * width + i % width];
  }
}

/// One bit for each of the block's threads, in words of a warp, for all threads to read.
__device__ const unsigned* votes(bool own) {
  __shared__ unsigned words[block_warps];
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // the last votes have been read
  const unsigned word = __ballot_sync(all_lanes, own);
  if (thread % warp_threads == 0) {
    words[thread / warp_threads] = word;
  }
  __syncthreads();
  return words;
}

/// A block of exactly block_threads for each of `count` = batch * time tokens.
template <class T>
__global__ void embedding_grad_kernel(const std::int32_t* tokens, const T* dy, float* dtable,
                                      std::int64_t batch, std::int64_t time, std::int64_t width) {
  const std::int64_t count = batch * time;
  const std::int64_t own = blockIdx.x;
  const std::int32_t token = tokens[own];
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t first = 0; first < own; first += block_threads) {
    const std::int64_t i = first + thread;
    const unsigned* words = votes(i < own && tokens[i] == token);
    for (int w = 0; w < block_warps; ++w) {
      if (words[w] != 0) {
        return;  // all threads of the block do
      }
    }
  }
  for (std::int64_t columns = 0; columns < width; columns += block_threads) {
    const std::int64_t column = columns + thread;
    float sum = 0;
    for (std::int64_t first = own; first < count; first += block_threads) {
      const std::int64_t i = first + thread;
      const unsigned* words = votes(i < count && tokens[i] == token);
      for (int w = 0; w < block_warps; ++w) {
        for (unsigned left = words[w]; left != 0; left &= left - 1) {
          const std::int64_t at = first + w * warp_threads + __ffs(static_cast<int>(left)) - 1;
          const std::int64_t row = at % time * batch + at / time;
          if (column < width) {
            sum += widen(dy[row * width + column]);
          }
        }
      }
    }
    if (column < width) {
      dtable[token * width + column] = sum;
    }
  }
}

}  // namespace

void embedding(cudaStream_t stream, Type type, const std::int32_t* tokens, const void* table,
               void* y, std::int64_t batch, std::int64_t time, std::int64_t width) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    launch(embedding_kernel<T>, grid_for(time * batch * width), stream, tokens,
           static_cast<const T*>(table), static_cast<T*>(y), batch, time, width);
  });
}

void embedding_grad(cudaStream_t stream, Type type, const std::int32_t* tokens, const void* dy,
                    float* dtable, std::int64_t batch, std::int64_t time, std::int64_t width) {
  const Grid grid{static_cast<unsigned>(batch * time), block_threads};
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    launch(embedding_grad_kernel<T>, grid, stream, tokens, static_cast<const T*>(dy), dtable, batch,
           time, width);
  });
}

}  // namespace crossover::cuda
