// SPDX-License-Identifier: Apache-2.0
#include "../split.h"
#include "../vector.h"
#include "operations.h"

namespace crossover::cpu {
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
                   for (std::int64_t row = begin; row < end; ++row) {
                     const T* place = table + row / of.batch * of.width;
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

}  // namespace crossover::cpu
