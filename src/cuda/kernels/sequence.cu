// SPDX-License-Identifier: Apache-2.0
#include "../plan/launches/sequence.h"

#include <type_traits>
#include <variant>

#include "../base/site.h"
#include "convert.cuh"
#include "crossover/functions.h"
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

template <class Unit, class T>
__global__ void gates_kernel(GatesArguments<Called> of) {
  const std::int64_t count = of.batch * of.hidden;
  const Before<Unit, T>* before = of.before;
  T* gates = of.gates;
  T* h = of.h;
  for (std::int64_t index = thread_index(); index < count; index += thread_count()) {
    const std::int64_t unit = index % of.hidden;
    const std::int64_t first = index / of.hidden * Unit::gates * of.hidden + unit;
    float i[Unit::gates];
    float k[Unit::gates];
    float made[Unit::gates];
    for (int g = 0; g < Unit::gates; ++g) {
      const std::int64_t offset = g * of.hidden;
      i[g] = of.of_inputs[first + offset] + of.b_ih[unit + offset];
      k[g] = of.b_hh[unit + offset];
      if (Unit::is_apart && of.of_states != nullptr) {
        k[g] += of.of_states[first + offset];
      }
    }
    float kept = 0;
    float state = 0;
    Unit::template forward<ScalarMaths<float>>(
        i, k, before != nullptr ? widen(before[index]) : 0.0F, made, kept, state);
    for (int g = 0; g < Unit::gates; ++g) {
      gates[first + g * of.hidden] = narrow<T>(made[g]);
    }
    of.kept[index] = kept;
    h[index] = narrow<T>(state);
  }
}

template <class Unit, class T>
__global__ void gates_grad_kernel(GatesGradArguments<Called> of) {
  const std::int64_t count = of.batch * of.hidden;
  const T* gates = of.gates;
  const Before<Unit, T>* before = of.before;
  const T* dh = of.dh;
  T* di = of.di;
  T* dk = of.dk;
  float* to_before = Unit::keeps_state ? of.carry + count : of.carry;
  for (std::int64_t index = thread_index(); index < count; index += thread_count()) {
    const std::int64_t first = index / of.hidden * Unit::gates * of.hidden + index % of.hidden;
    float made[Unit::gates];
    float of_i[Unit::gates];
    float of_k[Unit::gates];
    for (int g = 0; g < Unit::gates; ++g) {
      made[g] = widen(gates[first + g * of.hidden]);
    }
    float of_h = widen(dh[index]);
    float carried = 0;
    if (!of.is_last) {
      of_h += of.carry[index];
      carried = to_before[index];
    } else if (Unit::keeps_state) {
      of.carry[index] = 0;
    }
    Unit::template backward<ScalarMaths<float>>(made, of.kept[index],
                                                before != nullptr ? widen(before[index]) : 0.0F,
                                                of_h, carried, of_i, of_k);
    for (int g = 0; g < Unit::gates; ++g) {
      di[first + g * of.hidden] = narrow<T>(of_i[g]);
      if (Unit::is_apart) {
        dk[first + g * of.hidden] = narrow<T>(of_k[g]);
      }
    }
    to_before[index] = carried;
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

void call(const GatesArguments<Called>& of, const Site& site) {
  const auto of_unit = [&](auto unit) {
    with_float(of.gates.type, [&](auto zero) {
      launch(gates_kernel<decltype(unit), decltype(zero)>, grid_for(of.batch * of.hidden),
             site.stream, of);
    });
  };
  std::visit(of_unit, of.cell);
}

void call(const GatesGradArguments<Called>& of, const Site& site) {
  const auto of_unit = [&](auto unit) {
    with_float(of.gates.type, [&](auto zero) {
      launch(gates_grad_kernel<decltype(unit), decltype(zero)>, grid_for(of.batch * of.hidden),
             site.stream, of);
    });
  };
  std::visit(of_unit, of.cell);
}

}  // namespace crossover::cuda
