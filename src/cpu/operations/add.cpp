// SPDX-License-Identifier: Apache-2.0
#include "../split.h"
#include "crossover/float16.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

template <class T>
void add(int threads, const T* a, const T* b, T* y, std::int64_t count) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = narrowed<T>(widened(a[i]) + widened(b[i]));
    }
  });
}

}  // namespace

void lower(const Add& op, Lowering& to) {
  const Layout layout = to.elementwise_layout({op.a, op.b, op.y});
  with_float(to[op.y].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(op.y),
           {reads(op.a, layout), reads(op.b, layout), writes(op.y, layout)},
           [n = to.count(op.y)](const Invocation& call) {
             cpu::add(call.threads, call.operand<const T>(0), call.operand<const T>(1),
                      call.operand<T>(2), n);
           });
  });
}

}  // namespace crossover::cpu
