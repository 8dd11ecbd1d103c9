// SPDX-License-Identifier: Apache-2.0
#include "../places.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

template <class T>
void average(int threads, const LyingPlaces& of, const T* x, T* y) {
  for_each_shared(threads, of, [&](auto part, std::int64_t element, std::int64_t mean) {
    const Floats sum = sum_of_rows<1>(of.of.count, [&](std::int64_t place) {
      return std::array{load(part, x + element + place * of.of.inner)};
    })[0];
    store(part, sum / static_cast<float>(of.of.count), y + mean);
  });
}

template <class T>
void spread(int threads, const LyingPlaces& of, const T* dy, T* dx) {
  for_each_shared(threads, of, [&](auto part, std::int64_t element, std::int64_t mean) {
    const Floats share = load(part, dy + mean) / static_cast<float>(of.of.count);
    for (std::int64_t place = 0; place < of.of.count; ++place) {
      store(part, share, dx + element + place * of.of.inner);
    }
  });
}

}  // namespace

void lower(const GlobalAveragePool& op, Lowering& to) {
  const LyingPlaces of(to[op.x]);
  with_float(to[op.x].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::pooling, to.threads_for(op.x), {reads(op.x, of.layout), writes(op.y)},
           [of](const Invocation& call) {
             average(call.threads, of, call.operand<const T>(0), call.operand<T>(1));
           });
  });
}

void lower(const GlobalAveragePoolGrad& op, Lowering& to) {
  const LyingPlaces of(to[op.dx]);
  with_float(to[op.dx].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::pooling, to.threads_for(op.dx), {reads(op.dy), writes(op.dx, of.layout)},
           [of](const Invocation& call) {
             spread(call.threads, of, call.operand<const T>(0), call.operand<T>(1));
           });
  });
}

}  // namespace crossover::cpu
