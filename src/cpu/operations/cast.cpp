// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "../split.h"
#include "crossover/float16.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

template <class From, class To>
void cast(int threads, const From* x, To* y, std::int64_t count) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = narrowed<To>(widened(x[i]));
    }
  });
}

}  // namespace

void lower(const Cast& op, Lowering& to) {
  const Layout from = to.settle(op.x, {});
  const Layout into = to.settle(op.y, {});
  if (!from.is_ordered_like(into)) {  // oneDNN converts both at once
    to.add_reorder(OpCategory::elementwise, op.x, op.y);
    return;
  }
  // Padding is zero in both.
  const std::int64_t stored = from.bytes(to[op.x]) / bytes(to[op.x].type);
  with_float(to[op.x].type, [&](auto from_zero) {
    with_float(to[op.y].type, [&](auto into_zero) {
      using From = decltype(from_zero);
      using To = decltype(into_zero);
      if constexpr (std::is_same_v<From, float> || std::is_same_v<To, float>) {
        to.add(OpCategory::elementwise, to.threads_for(op.x),
               {reads(op.x, from), writes(op.y, into)}, [n = stored](const Invocation& call) {
                 cast(call.threads, call.operand<const From>(0), call.operand<To>(1), n);
               });
      }
    });
  });
}

}  // namespace crossover::cpu
