// SPDX-License-Identifier: Apache-2.0
#include "../plan/launches/attention.h"

#include <cfloat>
#include <cmath>

#include "../base/site.h"
#include "convert.cuh"
#include "grid.cuh"

namespace crossover::cuda {

// ---- Attention. Correct and simple: a warp has one query or one key, whose sums over the others
// its lanes hold for some of the d numbers each. Tiles of the others lie in shared memory, in rows
// that are a number longer than d, so that the lanes read from different banks.

namespace {

enum Part { query_part, key_part, value_part };

/// What a block works on: eight queries or keys of one head of one sequence. What takes a division
/// is found once: in 64 bits it takes as long as a hundred other instructions.
struct HeadBlock {
  HeadSizes sizes;
  std::int64_t head, first;   ///< of all sequences; the block's first place
  std::int64_t in_y, in_qkv;  ///< where the head begins in a row of y, and in a part of one of qkv
  int d, lane, warp;

  __device__ explicit HeadBlock(const HeadSizes& of)
      : sizes(of),
        d(static_cast<int>(of.d)),
        lane(static_cast<int>(threadIdx.x) % warp_threads),
        warp(static_cast<int>(threadIdx.x) / warp_threads) {
    const auto tiles = static_cast<unsigned>((of.time + block_warps - 1) / block_warps);
    const auto heads = static_cast<unsigned>(of.heads);
    const unsigned all = blockIdx.x / tiles;
    head = all;
    first = static_cast<std::int64_t>(blockIdx.x % tiles) * block_warps;
    const std::int64_t sequence = all / heads;
    const std::int64_t of_sequence = all % heads;
    in_y = (sequence * of.heads + of_sequence) * of.d;
    in_qkv = (3 * sequence * of.heads + of_sequence) * of.d;
  }

  [[nodiscard]] __device__ std::int64_t place() const { return first + warp; }
  [[nodiscard]] __device__ bool is_there() const { return place() < sizes.time; }
  [[nodiscard]] __device__ float scale() const {
    return 1 / std::sqrt(static_cast<float>(sizes.d));
  }
  /// Where the head's numbers of y begin at a place, and those of a part of qkv.
  [[nodiscard]] __device__ std::int64_t result(std::int64_t t) const {
    return t * sizes.batch * sizes.heads * sizes.d + in_y;
  }
  [[nodiscard]] __device__ std::int64_t part(std::int64_t t, Part part) const {
    return (3 * t * sizes.batch + part) * sizes.heads * sizes.d + in_qkv;
  }
  /// Of log_sums, and of what is like them.
  [[nodiscard]] __device__ std::int64_t sum(std::int64_t t) const { return head * sizes.time + t; }
};

/// `count` places from the first on, `stride` numbers apart; zeros behind the end. A warp takes a
/// place, its lanes the numbers there.
template <class T, class At>
__device__ void load_places(const HeadBlock& block, const T* from, const At& at, std::int64_t first,
                            int count, int stride, float* to) {
  for (int place = block.warp; place < count; place += block_warps) {
    const bool is_there = first + place < block.sizes.time;
    const T* row = is_there ? from + at(first + place) : from;
    for (int i = block.lane; i < block.d; i += warp_threads) {
      to[place * stride + i] = is_there ? widen(row[i]) : 0.0F;
    }
  }
}

__device__ float dot_of(const float* a, const float* b, int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

/// A lane's columns: lane, lane + 32, ...
template <int columns>
struct ColumnSums {
  float at[columns] = {};

  /// Adds the rows of a tile, each times what its lane has.
  __device__ void add(float factor, const float* tile, int d, int lane) {
    for (int row = 0; row < warp_threads; ++row) {
      const float of_row = __shfl_sync(all_lanes, factor, row);
      for (int m = 0; m < columns; ++m) {
        const int column = lane + m * warp_threads;
        at[m] += column < d ? of_row * tile[row * (d + 1) + column] : 0.0F;
      }
    }
  }
  __device__ void multiply(float factor) {
    for (int m = 0; m < columns; ++m) {
      at[m] *= factor;
    }
  }
  template <class T>
  __device__ void store(float factor, T* to, int d, int lane) const {
    for (int m = 0; m < columns; ++m) {
      const int column = lane + m * warp_threads;
      if (column < d) {
        to[column] = narrow<T>(at[m] * factor);
      }
    }
  }
};

template <int columns, class T>
__global__ void attention_kernel(AttentionArguments<Called> of) {
  const HeadBlock block(of.sizes);
  const int d = block.d;
  float* queries = dynamic_shared();
  float* keys = queries + block_warps * d;
  float* values = keys + warp_threads * (d + 1);
  const T* qkv = of.qkv;
  const auto part = [&](Part which) {
    return [&block, which](std::int64_t t) { return block.part(t, which); };
  };
  load_places(block, qkv, part(query_part), block.first, block_warps, d, queries);
  float largest = -FLT_MAX;
  float sum = 0;
  ColumnSums<columns> result;
  const std::int64_t last = block.first + block_warps;
  const std::int64_t end = of.sizes.causal && last < of.sizes.time ? last : of.sizes.time;
  for (std::int64_t tile = 0; tile < end; tile += warp_threads) {
    __syncthreads();
    load_places(block, qkv, part(key_part), tile, warp_threads, d + 1, keys);
    load_places(block, qkv, part(value_part), tile, warp_threads, d + 1, values);
    __syncthreads();
    const std::int64_t key = tile + block.lane;
    const bool sees = key < of.sizes.time && (!of.sizes.causal || key <= block.place());
    const float score =
        sees ? block.scale() * dot_of(queries + block.warp * d, keys + block.lane * (d + 1), d)
             : -FLT_MAX;
    const float now = std::fmax(largest, group_max(score));
    const float p = sees ? std::exp(score - now) : 0.0F;
    const float kept = std::exp(largest - now);
    sum = sum * kept + group_sum(p);
    result.multiply(kept);
    result.add(p, values, d, block.lane);
    largest = now;
  }
  if (block.is_there()) {
    result.store(1 / sum, static_cast<T*>(of.y) + block.result(block.place()), d, block.lane);
    if (block.lane == 0) {
      of.log_sums[block.sum(block.place())] = largest + std::log(sum);
    }
  }
}

template <int columns, class T>
__global__ void attention_grad_queries_kernel(AttentionGradQueriesArguments<Called> of) {
  const HeadBlock block(of.sizes);
  const int d = block.d;
  float* queries = dynamic_shared();
  float* gradients = queries + block_warps * d;
  float* keys = gradients + block_warps * d;
  float* values = keys + warp_threads * (d + 1);
  const T* qkv = of.qkv;
  const T* y = of.y;
  const T* dy = of.dy;
  const auto part = [&](Part which) {
    return [&block, which](std::int64_t t) { return block.part(t, which); };
  };
  const auto result = [&block](std::int64_t t) { return block.result(t); };
  load_places(block, qkv, part(query_part), block.first, block_warps, d, queries);
  load_places(block, dy, result, block.first, block_warps, d, gradients);
  float expected = 0;
  float log_sum = 0;
  if (block.is_there()) {
    const std::int64_t at = block.result(block.place());
    for (int i = block.lane; i < d; i += warp_threads) {
      expected += widen(dy[at + i]) * widen(y[at + i]);
    }
    log_sum = of.log_sums[block.sum(block.place())];
  }
  expected = group_sum(expected);
  ColumnSums<columns> dq;
  const std::int64_t last = block.first + block_warps;
  const std::int64_t end = of.sizes.causal && last < of.sizes.time ? last : of.sizes.time;
  for (std::int64_t tile = 0; tile < end; tile += warp_threads) {
    __syncthreads();
    load_places(block, qkv, part(key_part), tile, warp_threads, d + 1, keys);
    load_places(block, qkv, part(value_part), tile, warp_threads, d + 1, values);
    __syncthreads();
    const std::int64_t key = tile + block.lane;
    float ds = 0;
    if (block.is_there() && key < of.sizes.time && (!of.sizes.causal || key <= block.place())) {
      const float score =
          block.scale() * dot_of(queries + block.warp * d, keys + block.lane * (d + 1), d);
      const float dp = dot_of(gradients + block.warp * d, values + block.lane * (d + 1), d);
      ds = std::exp(score - log_sum) * (dp - expected);
    }
    dq.add(ds, keys, d, block.lane);
  }
  if (block.is_there()) {
    T* dqkv = of.dqkv;
    dq.store(block.scale(), dqkv + block.part(block.place(), query_part), d, block.lane);
    if (block.lane == 0) {
      of.expected[block.sum(block.place())] = expected;
    }
  }
}

template <int columns, class T>
__global__ void attention_grad_keys_kernel(AttentionGradKeysArguments<Called> of) {
  const HeadBlock block(of.sizes);
  const int d = block.d;
  float* keys = dynamic_shared();
  float* values = keys + block_warps * d;
  float* queries = values + block_warps * d;
  float* gradients = queries + warp_threads * (d + 1);
  const T* qkv = of.qkv;
  const T* dy = of.dy;
  const auto part = [&](Part which) {
    return [&block, which](std::int64_t t) { return block.part(t, which); };
  };
  const auto result = [&block](std::int64_t t) { return block.result(t); };
  load_places(block, qkv, part(key_part), block.first, block_warps, d, keys);
  load_places(block, qkv, part(value_part), block.first, block_warps, d, values);
  ColumnSums<columns> dk;
  ColumnSums<columns> dv;
  const std::int64_t begin =
      of.sizes.causal ? block.first / warp_threads * warp_threads : std::int64_t{0};
  for (std::int64_t tile = begin; tile < of.sizes.time; tile += warp_threads) {
    __syncthreads();
    load_places(block, qkv, part(query_part), tile, warp_threads, d + 1, queries);
    load_places(block, dy, result, tile, warp_threads, d + 1, gradients);
    __syncthreads();
    const std::int64_t query = tile + block.lane;
    float p = 0;
    float ds = 0;
    if (block.is_there() && query < of.sizes.time && (!of.sizes.causal || block.place() <= query)) {
      const float score =
          block.scale() * dot_of(queries + block.lane * (d + 1), keys + block.warp * d, d);
      const float dp = dot_of(gradients + block.lane * (d + 1), values + block.warp * d, d);
      p = std::exp(score - of.log_sums[block.sum(query)]);
      ds = p * (dp - of.expected[block.sum(query)]);
    }
    dk.add(ds, queries, d, block.lane);
    dv.add(p, gradients, d, block.lane);
  }
  if (block.is_there()) {
    T* dqkv = of.dqkv;
    dk.store(block.scale(), dqkv + block.part(block.place(), key_part), d, block.lane);
    dv.store(1, dqkv + block.part(block.place(), value_part), d, block.lane);
  }
}

/// A block for each eight places of each head; `rows` numbers of a head that the warps hold in
/// shared memory, beside two tiles.
Grid grid_of_heads(const HeadSizes& of, std::int64_t rows) {
  const std::int64_t blocks = of.batch * of.heads * ((of.time + block_warps - 1) / block_warps);
  const std::int64_t floats = rows * block_warps * of.d + 2 * warp_threads * (of.d + 1);
  return {static_cast<unsigned>(blocks), block_threads,
          static_cast<unsigned>(floats * static_cast<std::int64_t>(sizeof(float)))};
}

/// work(columns of a lane) as a constant.
template <class Work>
void with_columns(std::int64_t d, const Work& work) {
  if (d <= warp_threads) {
    work(std::integral_constant<int, 1>{});
  } else if (d <= 2 * warp_threads) {
    work(std::integral_constant<int, 2>{});
  } else {
    work(std::integral_constant<int, widest_head / warp_threads>{});
  }
}

}  // namespace

void call(const AttentionArguments<Called>& of, const Site& site) {
  with_float(of.qkv.type, [&](auto zero) {
    with_columns(of.sizes.d, [&](auto columns) {
      launch(attention_kernel<decltype(columns)::value, decltype(zero)>, grid_of_heads(of.sizes, 1),
             site.stream, of);
    });
  });
}

void call(const AttentionGradQueriesArguments<Called>& of, const Site& site) {
  with_float(of.qkv.type, [&](auto zero) {
    with_columns(of.sizes.d, [&](auto columns) {
      launch(attention_grad_queries_kernel<decltype(columns)::value, decltype(zero)>,
             grid_of_heads(of.sizes, 2), site.stream, of);
    });
  });
}

void call(const AttentionGradKeysArguments<Called>& of, const Site& site) {
  with_float(of.qkv.type, [&](auto zero) {
    with_columns(of.sizes.d, [&](auto columns) {
      launch(attention_grad_keys_kernel<decltype(columns)::value, decltype(zero)>,
             grid_of_heads(of.sizes, 2), site.stream, of);
    });
  });
}

// ---- Products of small matrices, and softmax. Correct and simple: of a tile of 32 by 32 results
// each thread has four, whose factors lie in shared memory, in rows that are a number longer, so
// that threads read from different banks.

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
