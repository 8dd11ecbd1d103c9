// SPDX-License-Identifier: Apache-2.0
#include "loss.cuh"

#include <cfloat>
#include <cmath>

#include "vectors.cuh"

namespace crossover::cuda {
namespace {

/// The sum over a block; thread 0 has it. In double: a batch may have thousands of rows.
__device__ double block_sum(double value) {
  __shared__ double partial[block_warps];
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  const int warp = static_cast<int>(threadIdx.x) / warp_threads;
  for (int apart = warp_threads / 2; apart > 0; apart /= 2) {
    value += __shfl_down_sync(all_lanes, value, apart);
  }
  if (lane == 0) {
    partial[warp] = value;
  }
  __syncthreads();
  double total = 0;
  if (threadIdx.x == 0) {
    for (int w = 0; w < block_warps; ++w) {
      total += partial[w];
    }
  }
  return total;
}

template <int lanes>
__device__ float group_max(float value) {
  for (int apart = lanes / 2; apart > 0; apart /= 2) {
    value = std::fmax(value, __shfl_xor_sync(all_lanes, value, apart));
  }
  return value;
}

template <int lanes>
__device__ float group_sum(float value) {
  for (int apart = lanes / 2; apart > 0; apart /= 2) {
    value += __shfl_xor_sync(all_lanes, value, apart);
  }
  return value;
}

__device__ std::int32_t label_of(const LossArguments& of, std::int64_t row) {
  const std::int64_t batch = of.rows / of.time;
  return of.labels[row % batch * of.time + row / batch];
}

/// `others`: the sum of exp(logit - largest) without the label's; `sum`: with it. Both terms are
/// positive: nothing cancels. Where the label leads, sum is 1 + others, of which rounding to float
/// would leave little. In float: some GPUs have 64 times less of double.
__device__ float loss_of_row(float at_label, float largest, float others, float sum) {
  return at_label == largest ? std::log1p(others) : (largest - at_label) + std::log(sum);
}

/// The gradient of one row, by a thread or by a warp, and its loss in every lane.
template <int lanes, class T>
__device__ float softmax_row(const LossArguments& of, std::int64_t row, int lane) {
  const float* logits = of.logits + row * of.classes;
  T* gradient = static_cast<T*>(of.dlogits) + row * of.classes;
  const std::int32_t label = label_of(of, row);
  const float at_label = logits[label];
  float largest = logits[0];
  for (std::int64_t c = lane; c < of.classes; c += lanes) {
    largest = std::fmax(largest, logits[c]);
  }
  largest = group_max<lanes>(largest);
  float others = 0;
  for (std::int64_t c = lane; c < of.classes; c += lanes) {
    others += c == label ? 0.0F : std::exp(logits[c] - largest);
  }
  others = group_sum<lanes>(others);
  const float sum = others + std::exp(at_label - largest);
  const float normalized = of.factor / sum;
  for (std::int64_t c = lane; c < of.classes; c += lanes) {
    gradient[c] =
        narrow<T>(std::exp(logits[c] - largest) * normalized - (c == label ? of.factor : 0.0F));
  }
  return loss_of_row(at_label, largest, others, sum);
}

/// What `of_warp` makes of the values of a warp, made of those of a block; in every thread.
template <class OfWarp>
__device__ float over_block(float value, float nothing, const OfWarp& of_warp) {
  __shared__ float partial[warp_threads];
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  const int warp = static_cast<int>(threadIdx.x) / warp_threads;
  const int warps = static_cast<int>(blockDim.x) / warp_threads;
  value = of_warp(value);
  if (lane == 0) {
    partial[warp] = value;
  }
  __syncthreads();
  value = of_warp(lane < warps ? partial[lane] : nothing);
  __syncthreads();  // before it is written again
  return value;
}

/// The same by a block, in two passes over the row: the largest so far and the sum relative to it
/// are found together.
template <int n, class T>
__device__ float softmax_row_of_block(const LossArguments& of, std::int64_t row) {
  const float* logits = of.logits + row * of.classes;
  T* gradient = static_cast<T*>(of.dlogits) + row * of.classes;
  const std::int32_t label = label_of(of, row);
  const float at_label = logits[label];
  constexpr float lowest = -FLT_MAX;
  float own_largest = lowest;
  float own_others = 0;
  for_neighbours<n>(of.classes, threadIdx.x, blockDim.x, [&](auto some, std::int64_t c) {
    constexpr int m = decltype(some)::value;
    const auto x = load<m>(logits + c);
    float largest = own_largest;
    for (int k = 0; k < m; ++k) {
      largest = std::fmax(largest, c + k == label ? lowest : x.at[k]);
    }
    if (largest > own_largest) {
      own_others *= std::exp(own_largest - largest);
      own_largest = largest;
    }
    for (int k = 0; k < m; ++k) {
      own_others += c + k == label ? 0.0F : std::exp(x.at[k] - own_largest);
    }
  });
  const float largest = std::fmax(at_label, over_block(own_largest, lowest, [](float value) {
                                    return group_max<warp_threads>(value);
                                  }));
  const float others = over_block(own_others * std::exp(own_largest - largest), 0.0F,
                                  [](float value) { return group_sum<warp_threads>(value); });
  const float sum = others + std::exp(at_label - largest);
  const float normalized = of.factor / sum;
  for_neighbours<n>(of.classes, threadIdx.x, blockDim.x, [&](auto some, std::int64_t c) {
    constexpr int m = decltype(some)::value;
    auto x = load<m>(logits + c);
    for (int k = 0; k < m; ++k) {
      x.at[k] = std::exp(x.at[k] - largest) * normalized - (c + k == label ? of.factor : 0.0F);
    }
    store(x, gradient + c);
  });
  return loss_of_row(at_label, largest, others, sum);
}

__device__ void count_run(std::int64_t* run, std::int64_t runs) {
  const std::int64_t next = *run + 1;
  *run = next < runs ? next : 0;
}

/// By one thread.
__device__ void store_loss(const LossArguments& of, double sum) {
  of.loss[*of.run] = static_cast<float>(sum / static_cast<double>(of.rows));
  if (of.advance) {
    count_run(of.run, of.runs);
  }
}

/// All of it in one block, for a small batch: one launch in place of two.
template <int lanes, class T>
__global__ void loss_in_one_block_kernel(LossArguments of) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  double sum = 0;
  for (std::int64_t row = threadIdx.x / lanes; row < of.rows; row += block_threads / lanes) {
    const float loss = softmax_row<lanes, T>(of, row, lane);
    sum += lane == 0 ? static_cast<double>(loss) : 0.0;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    store_loss(of, sum);
  }
}

template <int lanes, class T>
__global__ void row_losses_kernel(LossArguments of) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  for (std::int64_t row = thread_index() / lanes; row < of.rows; row += thread_count() / lanes) {
    const float loss = softmax_row<lanes, T>(of, row, lane);
    if (lane == 0) {
      of.row_losses[row] = loss;
    }
  }
}

constexpr int largest_block = 1024;  // threads

template <int n, class T>
__global__ void __launch_bounds__(largest_block) row_losses_by_blocks_kernel(LossArguments of) {
  for (std::int64_t row = blockIdx.x; row < of.rows; row += gridDim.x) {
    const float loss = softmax_row_of_block<n, T>(of, row);
    if (threadIdx.x == 0) {
      of.row_losses[row] = loss;
    }
  }
}

__global__ void mean_loss_kernel(LossArguments of) {
  double sum = 0;
  for (std::int64_t row = threadIdx.x; row < of.rows; row += block_threads) {
    sum += static_cast<double>(of.row_losses[row]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    store_loss(of, sum);
  }
}

template <int lanes, class T>
void launch_loss(cudaStream_t stream, const LossArguments& arguments, bool in_one_block) {
  if (in_one_block) {
    launch(loss_in_one_block_kernel<lanes, T>, {1, block_threads}, stream, arguments);
  } else {
    launch(row_losses_kernel<lanes, T>, grid_for(arguments.rows * lanes), stream, arguments);
  }
}

template <class T>
void launch_loss_by_blocks(cudaStream_t stream, const LossArguments& arguments, int threads) {
  constexpr int at_once = neighbours<float>;
  const bool aligned =
      arguments.classes % at_once == 0 && are_aligned({arguments.logits, arguments.dlogits});
  const Grid grid{grid_for(arguments.rows * block_threads).blocks, static_cast<unsigned>(threads)};
  with_neighbours<at_once>(aligned, [&](auto some) {
    launch(row_losses_by_blocks_kernel<decltype(some)::value, T>, grid, stream, arguments);
  });
}

__global__ void set_run_kernel(std::int64_t* run, std::int64_t value) { *run = value; }
__global__ void advance_run_kernel(std::int64_t* run, std::int64_t runs) { count_run(run, runs); }

}  // namespace

void softmax_cross_entropy(cudaStream_t stream, Type dlogits, const LossArguments& arguments,
                           const LossThreads& how) {
  with_float(dlogits, [&](auto zero) {
    using T = decltype(zero);
    if (how.threads == 1) {
      launch_loss<1, T>(stream, arguments, how.in_one_block);
    } else if (how.threads == warp_threads) {
      launch_loss<warp_threads, T>(stream, arguments, how.in_one_block);
    } else {
      launch_loss_by_blocks<T>(stream, arguments, how.threads);
    }
  });
}

void mean_loss(cudaStream_t stream, const LossArguments& arguments) {
  launch(mean_loss_kernel, {1, block_threads}, stream, arguments);
}

void set_run(cudaStream_t stream, std::int64_t* run, std::int64_t value) {
  launch(set_run_kernel, {1, 1}, stream, run, value);
}

void advance_run(cudaStream_t stream, std::int64_t* run, std::int64_t runs) {
  launch(advance_run_kernel, {1, 1}, stream, run, runs);
}

}  // namespace crossover::cuda
