// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../split.h"
#include "crossover/float16.h"
#include "operations.h"

namespace crossover::cpu {
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
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int32_t token = tokens[row % of.batch * of.time + row / of.batch];
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
            for (std::int64_t i = 0; i < of.width; ++i) {
              to[i] += widened(from[i]);
            }
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

}  // namespace crossover::cpu
