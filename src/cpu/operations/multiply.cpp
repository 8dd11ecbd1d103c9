// SPDX-License-Identifier: Apache-2.0
#include "../places.h"
#include "crossover/float16.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

/// What lies element by element as its factor does.
template <class T>
void add_product(const Id a, const Id b, const Id y, Lowering& to) {
  const Layout layout = to.elementwise_layout({a, b, y});
  to.add(OpCategory::elementwise, to.threads_for(y),
         {reads(a, layout), reads(b, layout), writes(y, layout)},
         [n = to.count(y)](const Invocation& call) {
           const T* left = call.operand<const T>(0);
           const T* right = call.operand<const T>(1);
           T* result = call.operand<T>(2);
           split(call.threads, n, [=](std::int64_t begin, std::int64_t end) {
             for (std::int64_t i = begin; i < end; ++i) {
               result[i] = narrowed<T>(widened(left[i]) * widened(right[i]));
             }
           });
         });
}

/// y = a gate.
template <class T>
void add_gated(const Id a, const Id gate, const Id y, Lowering& to) {
  const LyingPlaces of(to[y]);
  to.add(OpCategory::elementwise, to.threads_for(y),
         {reads(a, of.layout), reads(gate), writes(y, of.layout)}, [of](const Invocation& call) {
           const T* from = call.operand<const T>(0);
           const T* factors = call.operand<const T>(1);
           T* result = call.operand<T>(2);
           for_each_shared(call.threads, of, [=](auto part, std::int64_t at, std::int64_t shared) {
             const Floats factor = load(part, factors + shared);
             for (std::int64_t place = 0; place < of.of.count; ++place) {
               const std::int64_t i = at + place * of.of.inner;
               store(part, load(part, from + i) * factor, result + i);
             }
           });
         });
}

/// sums = the sum of a b over the places.
template <class T>
void add_sums(const Id a, const Id b, const Id sums, Lowering& to) {
  const LyingPlaces of(to[a]);
  to.add(OpCategory::elementwise, to.threads_for(a),
         {reads(a, of.layout), reads(b, of.layout), writes(sums)}, [of](const Invocation& call) {
           const T* left = call.operand<const T>(0);
           const T* right = call.operand<const T>(1);
           T* result = call.operand<T>(2);
           for_each_shared(call.threads, of, [=](auto part, std::int64_t at, std::int64_t shared) {
             const Floats sum = sum_of_rows<1>(of.of.count, [&](std::int64_t place) {
               const std::int64_t i = at + place * of.of.inner;
               return std::array{load(part, left + i) * load(part, right + i)};
             })[0];
             store(part, sum, result + shared);
           });
         });
}

template <class T>
void add_factor(const Id a, const Id b, const Id y, Lowering& to) {
  if (is_gate_of(to[a].shape, to[b].shape)) {
    add_gated<T>(a, b, y, to);
  } else {
    add_product<T>(a, b, y, to);
  }
}

}  // namespace

void lower(const Multiply& op, Lowering& to) {
  with_float(to[op.y].type, [&](auto zero) { add_factor<decltype(zero)>(op.a, op.b, op.y, to); });
}

void lower(const MultiplyGrad& op, Lowering& to) {
  with_float(to[op.dy].type, [&](auto zero) {
    using T = decltype(zero);
    if (op.da != none) {
      add_factor<T>(op.dy, op.b, op.da, to);
    }
    if (op.db == none) {
      return;
    }
    if (is_gate_of(to[op.dy].shape, to[op.db].shape)) {
      add_sums<T>(op.dy, op.a, op.db, to);
    } else {
      add_product<T>(op.dy, op.a, op.db, to);
    }
  });
}

}  // namespace crossover::cpu
