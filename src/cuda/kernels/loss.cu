// SPDX-License-Identifier: Apache-2.0
#include "../plan/launches/loss.h"

#include <cfloat>
#include <cmath>

#include "networks.cuh"
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

__device__ std::int32_t label_of(const LossArguments<Called>& of, std::int64_t row) {
  const std::int64_t batch = of.rows / of.time;
  return of.labels[row % batch * of.time + row / batch];
}

/// `others`: the sum of exp(logit - largest) without the label's; `sum`: with it. Both terms are
/// positive: nothing cancels. Where the label leads, sum is 1 + others, of which rounding to float
/// would leave little; for the same reason the gradient of the label is made of the others. In
/// float: some GPUs have 64 times less of double.
__device__ float loss_of_row(float at_label, float largest, float others, float sum) {
  return at_label == largest ? std::log1p(others) : (largest - at_label) + std::log(sum);
}

/// The gradient of one row, by a thread or by a warp, and its loss in every lane.
template <int lanes, class T>
__device__ float softmax_row(const LossArguments<Called>& of, std::int64_t row, int lane) {
  const float* logits = of.logits + row * of.classes;
  T* gradient = static_cast<T*>(of.dlogits.at) + row * of.classes;
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
    gradient[c] = narrow<T>((c == label ? -others : std::exp(logits[c] - largest)) * normalized);
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
__device__ float softmax_row_of_block(const LossArguments<Called>& of, std::int64_t row) {
  const float* logits = of.logits + row * of.classes;
  T* gradient = static_cast<T*>(of.dlogits.at) + row * of.classes;
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
      x.at[k] = (c + k == label ? -others : std::exp(x.at[k] - largest)) * normalized;
    }
    store(x, gradient + c);
  });
  return loss_of_row(at_label, largest, others, sum);
}

__device__ LossArguments<Called> loss_of_network(LossArguments<Called> of, std::int64_t stride) {
  of.logits = of_network(of.logits, stride);
  of.labels = of_network(of.labels, stride);
  of.loss = of_network(of.loss, stride);
  of.dlogits = of_network(of.dlogits, stride);
  return of;
}

__device__ RunCounter counter_of_network(const RunCounter& counter, std::int64_t stride) {
  return {of_network(counter.run, stride), counter.runs};
}

__device__ void count_run(const RunCounter& counter) {
  const std::int64_t next = *counter.run + 1;
  *counter.run = next < counter.runs ? next : 0;
}

/// By one thread.
template <class Arguments>
__device__ void store_loss(const Arguments& of, const RunCounter& counter, double sum,
                           std::int64_t count) {
  of.loss[*counter.run] = static_cast<float>(sum / static_cast<double>(count));
  if (of.advance) {
    count_run(counter);
  }
}

/// All of it in one block, for a small batch: one launch in place of two.
template <int lanes, class T>
__global__ void loss_in_one_block_kernel(LossArguments<Called> of, RunCounter counter,
                                         std::int64_t stride) {
  of = loss_of_network(of, stride);
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  double sum = 0;
  for (std::int64_t row = threadIdx.x / lanes; row < of.rows; row += block_threads / lanes) {
    const float loss = softmax_row<lanes, T>(of, row, lane);
    sum += lane == 0 ? static_cast<double>(loss) : 0.0;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    store_loss(of, counter_of_network(counter, stride), sum, of.rows);
  }
}

template <int lanes, class T>
__global__ void row_losses_kernel(LossArguments<Called> of, float* row_losses,
                                  std::int64_t stride) {
  of = loss_of_network(of, stride);
  row_losses = of_network(row_losses, stride);
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  for (std::int64_t row = thread_index() / lanes; row < of.rows; row += thread_count() / lanes) {
    const float loss = softmax_row<lanes, T>(of, row, lane);
    if (lane == 0) {
      row_losses[row] = loss;
    }
  }
}

constexpr int largest_block = 1024;  // threads

template <int n, class T>
__global__ void __launch_bounds__(largest_block,
                                  blocks_at_once<(sizeof(T) < sizeof(float) ? 2 : 1)>)
    row_losses_by_blocks_kernel(LossArguments<Called> of, float* row_losses, std::int64_t stride) {
  of = loss_of_network(of, stride);
  row_losses = of_network(row_losses, stride);
  for (std::int64_t row = blockIdx.x; row < of.rows; row += gridDim.x) {
    const float loss = softmax_row_of_block<n, T>(of, row);
    if (threadIdx.x == 0) {
      row_losses[row] = loss;
    }
  }
}

__global__ void mean_loss_kernel(MeanLossArguments<Called> of, const float* row_losses,
                                 RunCounter counter, std::int64_t stride) {
  row_losses = of_network(row_losses, stride);
  double sum = 0;
  for (std::int64_t row = threadIdx.x; row < of.rows; row += block_threads) {
    sum += static_cast<double>(row_losses[row]);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    of.loss = of_network(of.loss, stride);
    store_loss(of, counter_of_network(counter, stride), sum, of.count);
  }
}

/// `parts` blocks.
template <LossFunction function, class T>
__global__ void elementwise_loss_kernel(ElementwiseLossArguments<Called> of, float* sums,
                                        RunCounter counter, std::int64_t stride) {
  of.logits = of_network(of.logits, stride);
  of.targets = of_network(of.targets, stride);
  T* gradient = of_network(of.dlogits, stride);
  float own = 0;
  for (std::int64_t i = thread_index(); i < of.count; i += thread_count()) {
    const LossOfOne<float> one = elementwise_loss(function, of.logits[i], of.targets[i]);
    own += one.value;
    gradient[i] = narrow<T>(one.slope * of.factor);
  }
  const double sum = block_sum(own);
  if (threadIdx.x == 0) {
    if (of.parts == 1) {
      of.loss = of_network(of.loss, stride);
      store_loss(of, counter_of_network(counter, stride), sum, of.count);
    } else {
      of_network(sums, stride)[blockIdx.x] = static_cast<float>(sum);
    }
  }
}

template <int lanes, class T>
void launch_loss(const LossArguments<Called>& of, const Site& site) {
  if (of.in_one_block) {
    launch_for_networks(loss_in_one_block_kernel<lanes, T>, {1, block_threads}, site, of,
                        site.counter);
  } else {
    launch_for_networks(row_losses_kernel<lanes, T>, grid_for(of.rows * lanes), site, of,
                        site.row_losses);
  }
}

template <class T>
void launch_loss_by_blocks(const LossArguments<Called>& of, const Site& site) {
  constexpr int at_once = neighbours<float>;
  const bool aligned = of.classes % at_once == 0 && are_aligned({of.logits, of.dlogits});
  const Grid grid{grid_for(of.rows * block_threads).blocks, static_cast<unsigned>(of.threads)};
  with_neighbours<at_once>(aligned, [&](auto some) {
    launch_for_networks(row_losses_by_blocks_kernel<decltype(some)::value, T>, grid, site, of,
                        site.row_losses);
  });
}

__global__ void set_run_kernel(std::int64_t* run, std::int64_t value, std::int64_t stride) {
  *of_network(run, stride) = value;
}
__global__ void advance_run_kernel(RunCounter counter, std::int64_t stride) {
  count_run(counter_of_network(counter, stride));
}

}  // namespace

void call(const LossArguments<Called>& of, const Site& site) {
  with_float(of.dlogits.type, [&](auto zero) {
    using T = decltype(zero);
    if (of.threads == 1) {
      launch_loss<1, T>(of, site);
    } else if (of.threads == warp_threads) {
      launch_loss<warp_threads, T>(of, site);
    } else {
      launch_loss_by_blocks<T>(of, site);
    }
  });
}

void call(const ElementwiseLossArguments<Called>& of, const Site& site) {
  with_float(of.dlogits.type, [&](auto zero) {
    using T = decltype(zero);
    launch_for_networks(
        of.function == LossFunction::mse ? elementwise_loss_kernel<LossFunction::mse, T>
                                         : elementwise_loss_kernel<LossFunction::bce, T>,
        {static_cast<unsigned>(of.parts), block_threads}, site, of, site.row_losses, site.counter);
  });
}

void call(const MeanLossArguments<Called>& of, const Site& site) {
  launch_for_networks(mean_loss_kernel, {1, block_threads}, site, of, site.row_losses,
                      site.counter);
}

void call(const AdvanceArguments<Called>& /*of*/, const Site& site) {
  launch_for_networks(advance_run_kernel, {1, 1}, site, site.counter);
}

void set_run(std::int64_t value, const Site& site) {
  launch_for_networks(set_run_kernel, {1, 1}, site, site.counter.run, value);
}

}  // namespace crossover::cuda
