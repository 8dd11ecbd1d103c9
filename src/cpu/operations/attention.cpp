// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/attention.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "../base/attention_lanes.h"
#include "../base/loops.h"
#include "../base/product_tiles.h"
#include "../base/threads.h"
#include "../base/vector.h"
#include "crossover/float16.h"
#include "operations.h"

namespace crossover::cpu {

// ---- Embedding

namespace {

struct EmbeddingSizes {
  EmbeddingSizes(const Lowering& to, Id tokens, Id table)
      : batch(to[tokens].shape[0]),
        time(to[tokens].shape[1]),
        vocabulary(to[table].shape[0]),
        width(to[table].shape[1]) {}

  std::int64_t batch, time, vocabulary, width;
};

template <class T>
void look_up(int threads, const EmbeddingSizes& of, const std::int32_t* tokens, const T* table,
             T* y) {
  split(
      threads, of.time * of.batch,
      [&](std::int64_t begin, std::int64_t end) {
        RowOfSequences at(begin, of.batch);
        for (std::int64_t row = begin; row < end; ++row, at.next()) {
          const std::int32_t token = tokens[at.sample() * of.time + at.time()];
          std::copy_n(table + token * of.width, of.width, y + row * of.width);
        }
      },
      1);
}

/// Each thread has some rows of the table, and sums what all positions have for them.
template <class T>
void scatter(int threads, const EmbeddingSizes& of, const std::int32_t* tokens, const T* dy,
             float* dtable) {
  split(
      threads, of.vocabulary,
      [&](std::int64_t begin, std::int64_t end) {
        std::fill(dtable + begin * of.width, dtable + end * of.width, 0.0F);
        for (std::int64_t b = 0; b < of.batch; ++b) {
          for (std::int64_t t = 0; t < of.time; ++t) {
            const std::int32_t token = tokens[b * of.time + t];
            if (token < begin || token >= end) {
              continue;
            }
            float* to = dtable + token * of.width;
            const T* from = dy + (t * of.batch + b) * of.width;
            for_each_vector(of.width, [=](auto part, std::int64_t i) {
              store(part, load(part, to + i) + load(part, from + i), to + i);
            });
          }
        }
      },
      1);
}

}  // namespace

void lower(const Embedding& op, Lowering& to) {
  with_float(to[op.y].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(op.y),
           {reads(op.tokens), reads(op.table), writes(op.y)},
           [of = EmbeddingSizes(to, op.tokens, op.table)](const Invocation& call) {
             look_up(call.threads, of, call.operand<const std::int32_t>(0),
                     call.operand<const T>(1), call.operand<T>(2));
           });
  });
}

void lower(const EmbeddingGrad& op, Lowering& to) {
  with_float(to[op.dy].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(op.dtable),
           {reads(op.tokens), reads(op.dy), writes(op.dtable)},
           [of = EmbeddingSizes(to, op.tokens, op.dtable)](const Invocation& call) {
             scatter(call.threads, of, call.operand<const std::int32_t>(0),
                     call.operand<const T>(1), call.operand<float>(2));
           });
  });
}

// ---- Position embedding

namespace {

struct SequenceSizes {
  explicit SequenceSizes(const Shape& sequence)
      : time(sequence[0]), batch(sequence[1]), width(sequence[2]) {}

  std::int64_t time, batch, width;
};

}  // namespace

void lower(const PositionEmbedding& op, Lowering& to) {
  with_float(to[op.y].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(op.y),
           {reads(op.x), reads(op.table), writes(op.y)},
           [of = SequenceSizes(to[op.y].shape)](const Invocation& call) {
             const T* x = call.operand<const T>(0);
             const T* table = call.operand<const T>(1);
             T* y = call.operand<T>(2);
             split(
                 call.threads, of.time * of.batch,
                 [=](std::int64_t begin, std::int64_t end) {
                   RowOfSequences of_row(begin, of.batch);
                   for (std::int64_t row = begin; row < end; ++row, of_row.next()) {
                     const T* place = table + of_row.time() * of.width;
                     for_each_vector(of.width, [&](auto part, std::int64_t i) {
                       const std::int64_t at = row * of.width + i;
                       store(part, load(part, x + at) + load(part, place + i), y + at);
                     });
                   }
                 },
                 1);
           });
  });
}

void lower(const PositionEmbeddingGrad& op, Lowering& to) {
  with_float(to[op.dy].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(op.dy), {reads(op.dy), writes(op.dtable)},
           [of = SequenceSizes(to[op.dy].shape)](const Invocation& call) {
             const T* dy = call.operand<const T>(0);
             auto* dtable = call.operand<float>(1);
             split(
                 call.threads, of.time,
                 [=](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t t = begin; t < end; ++t) {
                     for_each_vector(of.width, [&](auto part, std::int64_t i) {
                       const T* first = dy + t * of.batch * of.width + i;
                       const Floats sum = sum_of_rows<1>(of.batch, [&](std::int64_t b) {
                         return std::array{load(part, first + b * of.width)};
                       })[0];
                       store(part, sum, dtable + t * of.width + i);
                     });
                   }
                 },
                 1);
           });
  });
}

// ---- Attention, head by head: the heads of all sequences are shared among the threads. Forward,
// no more than the scores of a tile of queries exist at a time. The gradient computes the
// probabilities of one head again, which takes one product of five and keeps what all heads have in
// the caches, and holds them and their gradients for the two products over queries.

namespace {

constexpr float minus_infinity = -__builtin_inff();

struct AttentionSizes : AttentionShape {
  AttentionSizes(const Lowering& to, Id qkv, std::int64_t all_heads, bool is_causal)
      : AttentionShape{.time = to[qkv].shape[0],
                       .batch = to[qkv].shape[1],
                       .heads = all_heads,
                       .width = to[qkv].shape[2] / 3,
                       .d = to[qkv].shape[2] / 3 / all_heads,
                       .causal = is_causal},
        rows(whole(time, tile_rows)),
        keys(whole(time, lanes)),
        columns(whole(d, lanes)) {}

  /// In whole tiles and vectors: queries, keys, and numbers of a head.
  std::int64_t rows, keys, columns;

  [[nodiscard]] double flops_of_product() const {
    return 2.0 * static_cast<double>(batch * heads * time) * static_cast<double>(time * d);
  }
  [[nodiscard]] std::int64_t all_heads() const { return batch * heads; }
  /// Keys that a tile of queries sees; in whole vectors.
  [[nodiscard]] std::int64_t seen(std::int64_t first_query) const {
    return causal ? std::min(time, first_query + tile_rows) : time;
  }
  /// Of scratch memory.
  [[nodiscard]] std::int64_t floats_forward() const {
    return 2 * rows * columns + d * keys + tile_rows * (keys + columns);
  }
  [[nodiscard]] std::int64_t floats_backward() const {
    return 3 * rows * columns + 2 * d * keys + 2 * rows * keys + tile_rows * columns;
  }

  /// Where the queries of a head lie, keys and values `width` behind them; and its results.
  template <class T>
  [[nodiscard]] RowsAt<T> queries(T* qkv, std::int64_t head) const {
    return {qkv + head / heads * 3 * width + head % heads * d, batch * 3 * width};
  }
  template <class T>
  [[nodiscard]] RowsAt<T> results(T* y, std::int64_t head) const {
    return {y + head / heads * width + head % heads * d, batch * width};
  }
};

/// Rows of numbers of a head as [rows, columns], with zeros behind them.
template <class T>
const float* copied(const AttentionSizes& of, RowsAt<const T> from, float factor, float* to) {
  std::fill_n(to, of.rows * of.columns, 0.0F);
  for (std::int64_t t = 0; t < of.time; ++t) {
    for_each_vector(of.d, [&](auto part, std::int64_t i) {
      store(part, load(part, from.at + t * from.stride + i) * factor, to + t * of.columns + i);
    });
  }
  return to;
}

/// The same as [d, keys].
template <class T>
const float* transposed(const AttentionSizes& of, RowsAt<const T> from, float* to) {
  for (std::int64_t t = 0; t < of.time; ++t) {  // the far rows are read once, in their order
    const T* row = from.at + t * from.stride;
    for (std::int64_t i = 0; i < of.d; ++i) {
      to[i * of.keys + t] = widened(row[i]);
    }
  }
  for (std::int64_t i = 0; i < of.d; ++i) {
    std::fill(to + i * of.keys + of.time, to + (i + 1) * of.keys, 0.0F);
  }
  return to;
}

/// A tile's rows that are there, times a factor for each, to where a head has them.
template <class T, class OfRow>
void store_tile(const AttentionSizes& of, const float* tile, std::int64_t first,
                const OfRow& factor, RowsAt<T> to) {
  for (std::int64_t t = first; t < std::min(of.time, first + tile_rows); ++t) {
    for_each_vector(of.d, [&](auto part, std::int64_t i) {
      store(part, load(part, tile + (t - first) * of.columns + i) * factor(t),
            to.at + t * to.stride + i);
    });
  }
}

/// The scores of a query become exponentials relative to the largest; returns that and their sum.
std::pair<float, float> exponentials(float* scores, std::int64_t seen, std::int64_t keys) {
  std::fill(scores + seen, scores + keys, minus_infinity);
  Floats largest = all(minus_infinity);
  for (std::int64_t i = 0; i < keys; i += lanes) {
    const Floats values = load(WholeVector{}, scores + i);
    largest = where(values > largest, values, largest);
  }
  const float most = largest_of_lanes(largest);
  Floats sums{};
  for (std::int64_t i = 0; i < keys; i += lanes) {
    const Floats e = exponential(load(WholeVector{}, scores + i) - most);
    store(WholeVector{}, e, scores + i);
    sums += e;
  }
  return {most, sum_of_lanes(sums)};
}

template <class T>
void attend(const AttentionSizes& of, RowsAt<const T> qkv, RowsAt<T> y, float* log_sums,
            AttentionScratch scratch) {
  const std::int64_t matrix = of.rows * of.columns;
  const float* q = copied(of, qkv, of.scale(), scratch.take(matrix));
  const float* v =
      copied(of, RowsAt<const T>{qkv.at + 2 * of.width, qkv.stride}, 1, scratch.take(matrix));
  const float* kt =
      transposed(of, RowsAt<const T>{qkv.at + of.width, qkv.stride}, scratch.take(of.d * of.keys));
  float* scores = scratch.take(tile_rows * of.keys);
  float* result = scratch.take(tile_rows * of.columns);
  for (std::int64_t first = 0; first < of.time; first += tile_rows) {
    const std::int64_t seen = of.seen(first);
    const std::int64_t keys = whole(seen, lanes);
    multiply_rows({q + first * of.columns, of.columns, 1}, {kt, of.keys}, of.d, keys,
                  {scores, of.keys});
    float inverse[tile_rows] = {};  // NOLINT(*-avoid-c-arrays)
    for (std::int64_t t = first; t < std::min(of.time, first + tile_rows); ++t) {
      const auto [largest, sum] = exponentials(scores + (t - first) * of.keys, of.keys_of(t), keys);
      log_sums[t] = largest + std::log(sum);
      inverse[t - first] = 1 / sum;
    }
    multiply_rows({scores, of.keys, 1}, {v, of.columns}, seen, of.columns, {result, of.columns});
    const float* factors = inverse;
    store_tile(
        of, result, first, [=](std::int64_t t) { return factors[t - first]; }, y);
  }
}

template <class T>
struct HeadGradient {
  RowsAt<const T> qkv, y, dy;
  const float* log_sums;
  RowsAt<T> dqkv;
};

/// The scores of a query become its probabilities, and the gradients of these those of the scores.
void differentiate(float* scores, float* gradients, std::int64_t seen, std::int64_t keys,
                   float log_sum, float expected) {
  std::fill(scores + seen, scores + keys, minus_infinity);
  for (std::int64_t i = 0; i < keys; i += lanes) {
    const Floats p = exponential(load(WholeVector{}, scores + i) - log_sum);
    store(WholeVector{}, p, scores + i);
    store(WholeVector{}, p * (load(WholeVector{}, gradients + i) - expected), gradients + i);
  }
}

template <class T>
float expected_gradient(const AttentionSizes& of, const HeadGradient<T>& op, std::int64_t t) {
  Floats sums{};
  for_each_vector(of.d, [&](auto part, std::int64_t i) {
    sums += load(part, op.dy.at + t * op.dy.stride + i) * load(part, op.y.at + t * op.y.stride + i);
  });
  return sum_of_lanes(sums);
}

template <class T>
void attend_grad(const AttentionSizes& of, const HeadGradient<T>& op, AttentionScratch scratch) {
  const std::int64_t matrix = of.rows * of.columns;
  const RowsAt<const T> keys_at{op.qkv.at + of.width, op.qkv.stride};
  const float* q = copied(of, op.qkv, of.scale(), scratch.take(matrix));
  const float* k = copied(of, keys_at, 1, scratch.take(matrix));
  const float* dy = copied(of, op.dy, 1, scratch.take(matrix));
  const float* kt = transposed(of, keys_at, scratch.take(of.d * of.keys));
  const float* vt = transposed(of, RowsAt<const T>{op.qkv.at + 2 * of.width, op.qkv.stride},
                               scratch.take(of.d * of.keys));
  float* p = scratch.take(of.rows * of.keys);
  float* ds = scratch.take(of.rows * of.keys);
  float* result = scratch.take(tile_rows * of.columns);
  for (std::int64_t first = 0; first < of.time; first += tile_rows) {
    const std::int64_t keys = whole(of.seen(first), lanes);
    const RowsAt<float> scores{p + first * of.keys, of.keys};
    const RowsAt<float> gradients{ds + first * of.keys, of.keys};
    multiply_rows({q + first * of.columns, of.columns, 1}, {kt, of.keys}, of.d, keys, scores);
    multiply_rows({dy + first * of.columns, of.columns, 1}, {vt, of.keys}, of.d, keys, gradients);
    for (std::int64_t t = first; t < std::min(of.time, first + tile_rows); ++t) {
      const std::int64_t row = (t - first) * of.keys;
      differentiate(scores.at + row, gradients.at + row, of.keys_of(t), keys, op.log_sums[t],
                    expected_gradient(of, op, t));
    }
    multiply_rows({gradients.at, of.keys, 1}, {k, of.columns}, of.seen(first), of.columns,
                  {result, of.columns});
    store_tile(
        of, result, first, [&](std::int64_t) { return of.scale(); }, op.dqkv);
  }
  for (std::int64_t key = 0; key < of.time; key += tile_rows) {
    const std::int64_t first = of.first_of(key);
    const std::int64_t queries = of.time - first;
    const auto sum_over_queries = [&](const float* factors, const float* rows,
                                      std::int64_t behind) {
      multiply_rows({factors + first * of.keys + key, 1, of.keys},
                    {rows + first * of.columns, of.columns}, queries, of.columns,
                    {result, of.columns});
      store_tile(
          of, result, key, [](std::int64_t) { return 1.0F; },
          RowsAt<T>{op.dqkv.at + behind, op.dqkv.stride});
    };
    sum_over_queries(ds, q, of.width);  // q has the factor of the scores
    sum_over_queries(p, dy, 2 * of.width);
  }
}

/// work(item, the thread's scratch) for so many items.
template <class Work>
void for_each_item(int threads, std::int64_t items, float* scratch, std::int64_t floats,
                   const Work& work) {
  split(
      threads, items,
      [&](std::int64_t begin, std::int64_t end) {
        float* own = scratch + floats * (threads > 1 ? omp_get_thread_num() : 0);
        for (std::int64_t item = begin; item < end; ++item) {
          work(item, AttentionScratch(own));
        }
      },
      1);
}

/// For each thread so many floats, in whole cache lines.
Argument scratch_of(Lowering& to, int threads, std::int64_t floats) {
  return to.reserve(threads * floats * static_cast<std::int64_t>(sizeof(float)));
}

}  // namespace

void lower(const Attention& op, Lowering& to) {
  const AttentionSizes of(to, op.qkv, op.heads, op.causal);
  const int threads = to.threads_for_flops(2 * of.flops_of_product());
  const auto add = [&](std::int64_t floats, Loop run) {
    to.add(OpCategory::product, threads,
           {reads(op.qkv), writes(op.y), writes(op.log_sums), scratch_of(to, threads, floats)},
           std::move(run));
  };
  if (const LanesOfHeads in_lanes(of); to[op.qkv].type == Type::f32 && in_lanes.pays_forward()) {
    const std::int64_t floats = whole(in_lanes.floats_forward(), 16);
    add(floats, [in_lanes, floats](const Invocation& call) {
      for_each_item(call.threads, in_lanes.items(), call.operand<float>(3), floats,
                    [&](std::int64_t item, AttentionScratch scratch) {
                      in_lanes.forward(item, call.operand<const float>(0), call.operand<float>(1),
                                       call.operand<float>(2), scratch);
                    });
    });
    return;
  }
  const std::int64_t floats = whole(of.floats_forward(), 16);
  with_float(to[op.qkv].type, [&](auto zero) {
    using T = decltype(zero);
    add(floats, [of, floats](const Invocation& call) {
      for_each_item(call.threads, of.all_heads(), call.operand<float>(3), floats,
                    [&](std::int64_t head, AttentionScratch scratch) {
                      attend<T>(of, of.queries(call.operand<const T>(0), head),
                                of.results(call.operand<T>(1), head),
                                call.operand<float>(2) + head * of.time, scratch);
                    });
    });
  });
}

void lower(const AttentionGrad& op, Lowering& to) {
  const AttentionSizes of(to, op.qkv, op.heads, op.causal);
  const int threads = to.threads_for_flops(5 * of.flops_of_product());
  const auto add = [&](std::int64_t floats, Loop run) {
    to.add(OpCategory::product, threads,
           {reads(op.qkv), reads(op.y), reads(op.log_sums), reads(op.dy), writes(op.dqkv),
            scratch_of(to, threads, floats)},
           std::move(run));
  };
  if (const LanesOfHeads in_lanes(of); to[op.qkv].type == Type::f32 && in_lanes.pays_backward()) {
    const std::int64_t floats = whole(in_lanes.floats_backward(), 16);
    add(floats, [in_lanes, floats](const Invocation& call) {
      for_each_item(call.threads, in_lanes.items(), call.operand<float>(5), floats,
                    [&](std::int64_t item, AttentionScratch scratch) {
                      in_lanes.backward(item, call.operand<const float>(0),
                                        call.operand<const float>(1), call.operand<const float>(2),
                                        call.operand<const float>(3), call.operand<float>(4),
                                        scratch);
                    });
    });
    return;
  }
  const std::int64_t floats = whole(of.floats_backward(), 16);
  with_float(to[op.qkv].type, [&](auto zero) {
    using T = decltype(zero);
    add(floats, [of, floats](const Invocation& call) {
      for_each_item(call.threads, of.all_heads(), call.operand<float>(5), floats,
                    [&](std::int64_t head, AttentionScratch scratch) {
                      attend_grad<T>(of,
                                     {.qkv = of.queries(call.operand<const T>(0), head),
                                      .y = of.results(call.operand<const T>(1), head),
                                      .dy = of.results(call.operand<const T>(3), head),
                                      .log_sums = call.operand<const float>(2) + head * of.time,
                                      .dqkv = of.queries(call.operand<T>(4), head)},
                                     scratch);
                    });
    });
  });
}

// ---- Softmax

namespace {

/// 16 bits keep no exponentials: these are computed twice.
template <class T>
void softmax_row(const T* x, std::int64_t keys, T* y) {
  constexpr bool has_room = std::is_same_v<T, float>;
  const float largest = largest_of(x, keys);
  const auto exponential_at = [&](auto part, std::int64_t i) {
    return exponential(load(part, x + i) - largest);
  };
  const float sum = sums_of_row<1>(keys, [&](auto part, std::int64_t i) {
    const Floats e = exponential_at(part, i);
    if constexpr (has_room) {
      store(part, e, y + i);
    }
    return std::array{e};
  })[0];
  const float inverse = 1 / sum;
  for_each_vector(keys, [&](auto part, std::int64_t i) {
    const Floats e = has_room ? load(part, y + i) : exponential_at(part, i);
    store(part, e * inverse, y + i);
  });
}

template <class T>
void softmax_grad_row(const T* y, const T* dy, std::int64_t keys, T* dx) {
  const float sum = sums_of_row<1>(keys, [&](auto part, std::int64_t i) {
    return std::array{load(part, y + i) * load(part, dy + i)};
  })[0];
  for_each_vector(keys, [&](auto part, std::int64_t i) {
    store(part, load(part, y + i) * (load(part, dy + i) - sum), dx + i);
  });
}

template <class Work>
void for_each_part(int threads, std::int64_t parts, const Work& work) {
  split(
      threads, parts,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t part = begin; part < end; ++part) {
          work(part);
        }
      },
      1);
}

}  // namespace

void lower(const Softmax& op, Lowering& to) {
  with_float(to[op.y].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::normalization, to.threads_for(op.y), {reads(op.x), writes(op.y)},
           [op, shape = to[op.x].shape](const Invocation& call) {
             const std::int64_t keys = shape.back() / op.heads;
             for_each_part(call.threads, leading(shape) * op.heads, [&](std::int64_t part) {
               const std::int64_t seen = op.seen(shape, part / op.heads);
               T* y = call.operand<T>(1) + part * keys;
               softmax_row(call.operand<const T>(0) + part * keys, seen, y);
               std::fill(y + seen, y + keys, T{});
             });
           });
  });
}

void lower(const SoftmaxGrad& op, Lowering& to) {
  with_float(to[op.y].type, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t keys = to[op.y].shape.back() / op.heads;
    to.add(OpCategory::normalization, to.threads_for(op.y),
           {reads(op.y), reads(op.dy), writes(op.dx)},
           [keys, parts = to.count(op.y) / keys](const Invocation& call) {
             for_each_part(call.threads, parts, [&](std::int64_t part) {
               softmax_grad_row(call.operand<const T>(0) + part * keys,
                                call.operand<const T>(1) + part * keys, keys,
                                call.operand<T>(2) + part * keys);
             });
           });
  });
}

}  // namespace crossover::cpu
