// SPDX-License-Identifier: Apache-2.0
#include "sequence.h"

#include <cmath>

#include "convert.cuh"
#include "crossover/elementwise.h"
#include "grid.cuh"
#include "site.h"

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

/// The numbers of the threads that say yes, in their order, for all threads to read until the next
/// call; how many they are.
template <class Number>
__device__ int collect(bool own, Number number, Number (&numbers)[block_threads]) {
  const unsigned* words = votes(own);
  const int warp = static_cast<int>(threadIdx.x) / warp_threads;
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  int before = 0;
  int all = 0;
  for (int w = 0; w < block_warps; ++w) {
    const int count = __popc(words[w]);
    before += w < warp ? count : 0;
    all += count;
  }
  if (own) {
    numbers[before + __popc(words[warp] & ((1U << lane) - 1))] = number;
  }
  __syncthreads();
  return all;
}

/// A block of exactly block_threads for each of `count` = batch * time tokens. The rows of one
/// token are added in order, but read several at a time: of a frequent one there may be thousands.
template <class T>
__global__ void embedding_grad_kernel(const std::int32_t* tokens, const T* dy, float* dtable,
                                      std::int64_t batch, std::int64_t time, std::int64_t width) {
  constexpr int rows_at_once = 8;
  __shared__ std::int64_t rows[block_threads];
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
      const int found = collect(i < count && tokens[i] == token, i % time * batch + i / time, rows);
      for (int r = 0; r < found && column < width; r += rows_at_once) {
        float values[rows_at_once];
        for (int k = 0; k < rows_at_once; ++k) {
          values[k] = r + k < found ? widen(dy[rows[r + k] * width + column]) : 0.0F;
        }
        for (int k = 0; k < rows_at_once; ++k) {
          sum += values[k];
        }
      }
    }
    if (column < width) {
      dtable[token * width + column] = sum;
    }
  }
}

template <class T>
__global__ void position_embedding_kernel(PositionEmbeddingArguments<Called> of) {
  const T* x = of.x;
  const T* table = of.table;
  T* y = of.y;
  const std::int64_t place = of.batch * of.width;
  for (std::int64_t i = thread_index(); i < of.time * place; i += thread_count()) {
    y[i] = narrow<T>(widen(x[i]) + widen(table[i / place * of.width + i % of.width]));
  }
}

template <class T>
__global__ void position_embedding_grad_kernel(PositionEmbeddingGradArguments<Called> of) {
  const T* dy = of.dy;
  for (std::int64_t i = thread_index(); i < of.time * of.width; i += thread_count()) {
    const T* first = dy + i / of.width * of.batch * of.width + i % of.width;
    float sum = 0;
    for (std::int64_t b = 0; b < of.batch; ++b) {
      sum += widen(first[b * of.width]);
    }
    of.dtable[i] = sum;
  }
}

constexpr int gate_count = 4;
constexpr int gru_gate_count = 3;
enum Gate { input_gate, forget_gate, cell_gate, output_gate };

template <class T>
__global__ void gates_kernel(LstmGatesArguments<Called> of) {
  const std::int64_t count = of.batch * of.hidden;
  T* gates = of.gates;
  T* h = of.h;
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t unit = i % of.hidden;
    const std::int64_t first = i / of.hidden * gate_count * of.hidden + unit;
    float value[gate_count];
    for (int g = 0; g < gate_count; ++g) {
      const std::int64_t bias = g * of.hidden + unit;
      const float sum = of.sums[first + g * of.hidden] + (of.b_ih[bias] + of.b_hh[bias]);
      value[g] = g == cell_gate ? std::tanh(sum) : crossover::activate(Activation::sigmoid, sum);
    }
    for (int g = 0; g < gate_count; ++g) {
      gates[first + g * of.hidden] = narrow<T>(value[g]);
    }
    const float before = of.c_before != nullptr ? of.c_before[i] : 0.0F;
    const float c = value[forget_gate] * before + value[input_gate] * value[cell_gate];
    of.c[i] = c;
    h[i] = narrow<T>(value[output_gate] * std::tanh(c));
  }
}

template <class T>
__global__ void gates_grad_kernel(LstmGatesGradArguments<Called> of) {
  const std::int64_t count = of.batch * of.hidden;
  const T* gates = of.gates;
  const T* dh = of.dh;
  T* dgates = of.dgates;
  for (std::int64_t index = thread_index(); index < count; index += thread_count()) {
    const std::int64_t first = index / of.hidden * gate_count * of.hidden + index % of.hidden;
    const float i = widen(gates[first]);
    const float f = widen(gates[first + forget_gate * of.hidden]);
    const float g = widen(gates[first + cell_gate * of.hidden]);
    const float o = widen(gates[first + output_gate * of.hidden]);
    const float cell = std::tanh(of.c[index]);
    float to_h = widen(dh[index]);
    float to_c = 0;
    if (of.is_last) {
      of.carry_h[index] = 0;
    } else {
      to_h += of.carry_h[index];
      to_c = of.carry_c[index];
    }
    to_c += to_h * o * (1 - cell * cell);
    const float before = of.c_before != nullptr ? of.c_before[index] : 0.0F;
    dgates[first] = narrow<T>(to_c * g * (i * (1 - i)));
    dgates[first + forget_gate * of.hidden] = narrow<T>(to_c * before * (f * (1 - f)));
    dgates[first + cell_gate * of.hidden] = narrow<T>(to_c * i * (1 - g * g));
    dgates[first + output_gate * of.hidden] = narrow<T>(to_h * cell * (o * (1 - o)));
    of.carry_c[index] = to_c * f;
  }
}

template <class T>
__global__ void gru_gates_kernel(GruGatesArguments<Called> of) {
  const std::int64_t count = of.batch * of.hidden;
  const T* before = of.h_before;
  T* gates = of.gates;
  T* h = of.h;
  for (std::int64_t index = thread_index(); index < count; index += thread_count()) {
    const std::int64_t unit = index % of.hidden;
    const std::int64_t first = index / of.hidden * gru_gate_count * of.hidden + unit;
    float i[gru_gate_count];
    float k[gru_gate_count];
    for (int g = 0; g < gru_gate_count; ++g) {
      const std::int64_t bias = g * of.hidden + unit;
      const std::int64_t at = first + g * of.hidden;
      i[g] = of.of_inputs[at] + of.b_ih[bias];
      k[g] = (of.of_states != nullptr ? of.of_states[at] : 0.0F) + of.b_hh[bias];
    }
    const float r = crossover::activate(Activation::sigmoid, i[0] + k[0]);
    const float z = crossover::activate(Activation::sigmoid, i[1] + k[1]);
    const float n = std::tanh(i[2] + r * k[2]);
    gates[first] = narrow<T>(r);
    gates[first + of.hidden] = narrow<T>(z);
    gates[first + 2 * of.hidden] = narrow<T>(n);
    of.recurrent[index] = k[2];
    h[index] = narrow<T>((1 - z) * n + (before != nullptr ? z * widen(before[index]) : 0.0F));
  }
}

template <class T>
__global__ void gru_gates_grad_kernel(GruGatesGradArguments<Called> of) {
  const std::int64_t count = of.batch * of.hidden;
  const T* gates = of.gates;
  const T* before = of.h_before;
  const T* dh = of.dh;
  T* di = of.di;
  T* dk = of.dk;
  for (std::int64_t index = thread_index(); index < count; index += thread_count()) {
    const std::int64_t first = index / of.hidden * gru_gate_count * of.hidden + index % of.hidden;
    const float r = widen(gates[first]);
    const float z = widen(gates[first + of.hidden]);
    const float n = widen(gates[first + 2 * of.hidden]);
    const float of_h = widen(dh[index]) + (of.is_last ? 0.0F : of.carry[index]);
    const float of_n = of_h * (1 - z) * (1 - n * n);
    const float apart = (before != nullptr ? widen(before[index]) : 0.0F) - n;
    const T of_z = narrow<T>(of_h * apart * (z * (1 - z)));
    const T of_r = narrow<T>(of_n * of.recurrent[index] * (r * (1 - r)));
    di[first] = of_r;
    dk[first] = of_r;
    di[first + of.hidden] = of_z;
    dk[first + of.hidden] = of_z;
    di[first + 2 * of.hidden] = narrow<T>(of_n);
    dk[first + 2 * of.hidden] = narrow<T>(of_n * r);
    of.carry[index] = of_h * z;
  }
}

}  // namespace

void call(const EmbeddingArguments<Called>& of, const Site& site) {
  with_float(of.y.type, [&](auto zero) {
    launch(embedding_kernel<decltype(zero)>, grid_for(of.time * of.batch * of.width), site.stream,
           of.tokens, of.table, of.y, of.batch, of.time, of.width);
  });
}

void call(const EmbeddingGradArguments<Called>& of, const Site& site) {
  const Grid grid{static_cast<unsigned>(of.batch * of.time), block_threads};
  with_float(of.dy.type, [&](auto zero) {
    launch(embedding_grad_kernel<decltype(zero)>, grid, site.stream, of.tokens, of.dy, of.dtable,
           of.batch, of.time, of.width);
  });
}

void call(const PositionEmbeddingArguments<Called>& of, const Site& site) {
  with_float(of.y.type, [&](auto zero) {
    launch(position_embedding_kernel<decltype(zero)>, grid_for(of.time * of.batch * of.width),
           site.stream, of);
  });
}

void call(const PositionEmbeddingGradArguments<Called>& of, const Site& site) {
  with_float(of.dy.type, [&](auto zero) {
    launch(position_embedding_grad_kernel<decltype(zero)>, grid_for(of.time * of.width),
           site.stream, of);
  });
}

void call(const LstmGatesArguments<Called>& of, const Site& site) {
  with_float(of.gates.type, [&](auto zero) {
    launch(gates_kernel<decltype(zero)>, grid_for(of.batch * of.hidden), site.stream, of);
  });
}

void call(const LstmGatesGradArguments<Called>& of, const Site& site) {
  with_float(of.gates.type, [&](auto zero) {
    launch(gates_grad_kernel<decltype(zero)>, grid_for(of.batch * of.hidden), site.stream, of);
  });
}

void call(const GruGatesArguments<Called>& of, const Site& site) {
  with_float(of.gates.type, [&](auto zero) {
    launch(gru_gates_kernel<decltype(zero)>, grid_for(of.batch * of.hidden), site.stream, of);
  });
}

void call(const GruGatesGradArguments<Called>& of, const Site& site) {
  with_float(of.gates.type, [&](auto zero) {
    launch(gru_gates_grad_kernel<decltype(zero)>, grid_for(of.batch * of.hidden), site.stream, of);
  });
}

}  // namespace crossover::cuda
