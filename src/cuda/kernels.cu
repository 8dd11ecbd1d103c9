// SPDX-License-Identifier: Apache-2.0
// Own kernels. They keep to blocks of one dimension, static shared memory, block barriers and
// shuffles of full warps; sums are taken in a fixed order, so that a run repeats to the bit.
#include "kernels.cuh"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "convert.cuh"
#include "grid.cuh"

namespace crossover::cuda {
namespace {

constexpr int warp_threads = 32;
constexpr int block_warps = block_threads / warp_threads;
constexpr unsigned all_lanes = 0xffffffffU;

// ---- elementwise: the activation is a template's argument, so that no thread branches on it
// --------

template <Activation activation, class T>
__global__ void activate_kernel(const T* x, T* y, std::int64_t count) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    y[i] = narrow<T>(crossover::activate(activation, widen(x[i])));
  }
}

template <Activation activation, class T>
__global__ void bias_activate_kernel(const float* x, const T* bias, T* y, std::int64_t count,
                                     std::int64_t columns) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    y[i] = narrow<T>(crossover::activate(activation, x[i] + widen(bias[i % columns])));
  }
}

template <Activation activation, class T>
__global__ void activate_grad_kernel(const T* y, const T* dy, T* dx, std::int64_t count) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    dx[i] = narrow<T>(widen(dy[i]) * derivative_from_result(activation, widen(y[i])));
  }
}

template <class T>
__global__ void add_kernel(const T* a, const T* b, T* y, std::int64_t count) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    y[i] = narrow<T>(widen(a[i]) + widen(b[i]));
  }
}

template <class From, class To>
__global__ void cast_kernel(CastSpans spans) {
  for (int s = 0; s < spans.count; ++s) {
    const auto* x = static_cast<const From*>(spans.span[s].x);
    auto* y = static_cast<To*>(spans.span[s].y);
    const std::int64_t count = spans.span[s].count;
    for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
      y[i] = narrow<To>(widen(x[i]));
    }
  }
}

// ---- sums
// ------------------------------------------------------------------------------------------

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

// ---- loss
// ------------------------------------------------------------------------------------------

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

/// The gradient of one row, by a thread or by a warp, and its loss in every lane.
template <int lanes, class T>
__device__ float softmax_row(const LossArguments& of, std::int64_t row, int lane) {
  const float* logits = of.logits + row * of.classes;
  T* gradient = static_cast<T*>(of.dlogits) + row * of.classes;
  const std::int32_t label = of.labels[row];
  const float at_label = logits[label];
  float largest = logits[0];
  for (std::int64_t c = lane; c < of.classes; c += lanes) {
    largest = std::fmax(largest, logits[c]);
  }
  largest = group_max<lanes>(largest);
  float sum = 0;
  for (std::int64_t c = lane; c < of.classes; c += lanes) {
    sum += std::exp(logits[c] - largest);
  }
  sum = group_sum<lanes>(sum);
  const float normalized = of.factor / sum;
  for (std::int64_t c = lane; c < of.classes; c += lanes) {
    gradient[c] =
        narrow<T>(std::exp(logits[c] - largest) * normalized - (c == label ? of.factor : 0.0F));
  }
  // A small loss is the difference of large numbers: taken in double, as on the CPU.
  return static_cast<float>(static_cast<double>(largest - at_label) +
                            std::log(static_cast<double>(sum)));
}

/// By one thread.
__device__ void store_loss(const LossArguments& of, double sum) {
  of.loss[*of.run] = static_cast<float>(sum / static_cast<double>(of.rows));
  if (of.advance) {
    *of.run += 1;
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
void launch_loss(cudaStream_t stream, const LossArguments& arguments) {
  constexpr std::int64_t rows_of_one_block = 4;  // for each thread or warp
  if (arguments.rows <= rows_of_one_block * block_threads / lanes) {
    launch(loss_in_one_block_kernel<lanes, T>, {1, block_threads}, stream, arguments);
    return;
  }
  launch(row_losses_kernel<lanes, T>, grid_for(arguments.rows * lanes), stream, arguments);
  launch(mean_loss_kernel, {1, block_threads}, stream, arguments);
}

__global__ void set_run_kernel(std::int64_t* run, std::int64_t value) { *run = value; }
__global__ void advance_run_kernel(std::int64_t* run) { *run += 1; }

// ---- optimizers
// ------------------------------------------------------------------------------------

__global__ void sgd_kernel(UpdateSpans spans, float learning_rate) {
  for (int s = 0; s < spans.count; ++s) {
    float* w = spans.span[s].w;
    const float* g = spans.span[s].g;
    const std::int64_t count = spans.span[s].count;
    for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
      w[i] = crossover::sgd(w[i], g[i], learning_rate);
    }
  }
}

__global__ void adamw_time_kernel(AdamWConstants constants, std::int32_t* time,
                                  AdamWFactors<float>* factors) {
  *time += 1;
  *factors = adamw_factors<float>(constants, 0.0, *time);
}

__global__ void adamw_kernel(UpdateSpans spans, const AdamWFactors<float>* factors) {
  AdamWFactors<float> f = *factors;
  for (int s = 0; s < spans.count; ++s) {
    const UpdateSpan span = spans.span[s];
    f.keep = span.keep;
    for (std::int64_t i = thread_index(); i < span.count; i += thread_count()) {
      float w = span.w[i];
      float m = span.m[i];
      float v = span.v[i];
      crossover::adamw(w, span.g[i], m, v, f);
      span.w[i] = w;
      span.m[i] = m;
      span.v[i] = v;
    }
  }
}

template <class Spans>
Grid grid_for_largest(const Spans& spans) {
  std::int64_t largest = 0;
  for (int s = 0; s < spans.count; ++s) {
    largest = std::max(largest, spans.span[s].count);
  }
  return cuda::grid_for(largest);
}

/// work(constant) for the constant whose value is the activation.
template <class Work>
void with_activation(Activation activation, const Work& work) {
  switch (activation) {
    case Activation::identity:
      return work(std::integral_constant<Activation, Activation::identity>{});
    case Activation::relu:
      return work(std::integral_constant<Activation, Activation::relu>{});
    case Activation::sigmoid:
      return work(std::integral_constant<Activation, Activation::sigmoid>{});
  }
}

}  // namespace

void cast(cudaStream_t stream, Type from, Type to, const CastSpans& spans) {
  const Grid grid = grid_for_largest(spans);
  if (from == Type::f32) {
    with_float(to,
               [&](auto zero) { launch(cast_kernel<float, decltype(zero)>, grid, stream, spans); });
  } else {
    with_float(from,
               [&](auto zero) { launch(cast_kernel<decltype(zero), float>, grid, stream, spans); });
  }
}

void activate(cudaStream_t stream, Activation activation, Type type, const void* x, void* y,
              std::int64_t count) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    with_activation(activation, [&](auto chosen) {
      launch(activate_kernel<decltype(chosen)::value, T>, grid_for(count), stream,
             static_cast<const T*>(x), static_cast<T*>(y), count);
    });
  });
}

void bias_activate(cudaStream_t stream, Activation activation, Type type, const float* x,
                   const void* bias, void* y, std::int64_t rows, std::int64_t columns) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    with_activation(activation, [&](auto chosen) {
      launch(bias_activate_kernel<decltype(chosen)::value, T>, grid_for(rows * columns), stream, x,
             static_cast<const T*>(bias), static_cast<T*>(y), rows * columns, columns);
    });
  });
}

void activate_grad(cudaStream_t stream, Activation activation, Type type, const void* y,
                   const void* dy, void* dx, std::int64_t count) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    with_activation(activation, [&](auto chosen) {
      launch(activate_grad_kernel<decltype(chosen)::value, T>, grid_for(count), stream,
             static_cast<const T*>(y), static_cast<const T*>(dy), static_cast<T*>(dx), count);
    });
  });
}

void add(cudaStream_t stream, Type type, const void* a, const void* b, void* y,
         std::int64_t count) {
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    launch(add_kernel<T>, grid_for(count), stream, static_cast<const T*>(a),
           static_cast<const T*>(b), static_cast<T*>(y), count);
  });
}

void column_sums(cudaStream_t stream, Type type, const void* matrix, std::int64_t rows,
                 std::int64_t columns, bool accumulate, float* sums) {
  const auto blocks = static_cast<unsigned>((columns + warp_threads - 1) / warp_threads);
  with_float(type, [&](auto zero) {
    using T = decltype(zero);
    launch(column_sums_kernel<T>, {blocks, block_threads}, stream, static_cast<const T*>(matrix),
           rows, columns, accumulate, sums);
  });
}

void softmax_cross_entropy(cudaStream_t stream, Type dlogits, const LossArguments& arguments) {
  constexpr std::int64_t classes_of_one_thread = 16;
  with_float(dlogits, [&](auto zero) {
    using T = decltype(zero);
    if (arguments.classes <= classes_of_one_thread) {
      launch_loss<1, T>(stream, arguments);
    } else {
      launch_loss<warp_threads, T>(stream, arguments);
    }
  });
}

void set_run(cudaStream_t stream, std::int64_t* run, std::int64_t value) {
  launch(set_run_kernel, {1, 1}, stream, run, value);
}

void advance_run(cudaStream_t stream, std::int64_t* run) {
  launch(advance_run_kernel, {1, 1}, stream, run);
}

void sgd(cudaStream_t stream, const UpdateSpans& spans, float learning_rate) {
  launch(sgd_kernel, grid_for_largest(spans), stream, spans, learning_rate);
}

void adamw_time(cudaStream_t stream, const AdamWConstants& constants, std::int32_t* time,
                AdamWFactors<float>* factors) {
  launch(adamw_time_kernel, {1, 1}, stream, constants, time, factors);
}

void adamw(cudaStream_t stream, const UpdateSpans& spans, const AdamWFactors<float>* factors) {
  launch(adamw_kernel, grid_for_largest(spans), stream, spans, factors);
}

cudaError_t find_kernels() { return find_code(add_kernel<float>); }

}  // namespace crossover::cuda
