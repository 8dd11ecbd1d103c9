// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/softmax.h"

#include <algorithm>
#include <array>

#include "../row_sums.h"
#include "../split.h"
#include "../vector_math.h"
#include "operations.h"

namespace crossover::cpu {
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
