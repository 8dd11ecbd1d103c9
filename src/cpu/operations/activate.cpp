// SPDX-License-Identifier: Apache-2.0
// An activation and its gradient. The choice stands outside the loops, so that each is vector code
// of one activation.
#include "../split.h"
#include "../vector_activations.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

template <Activation activation, class T>
void activate_all(int threads, const T* x, T* y, std::int64_t count) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for_each_vector(end - begin, [=](auto part, std::int64_t i) {
      store(part, activate<activation>(load(part, x + begin + i)), y + begin + i);
    });
  });
}

/// dx may be dy.
template <Activation activation, class T>
void activate_grad(int threads, const T* at, const T* dy, T* dx, std::int64_t count) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for_each_vector(end - begin, [=](auto part, std::int64_t i) {
      const Floats gradient = load(part, dy + begin + i);
      store(part, times_derivative<activation>(gradient, load(part, at + begin + i)),
            dx + begin + i);
    });
  });
}

}  // namespace

void lower(const Activate& op, Lowering& to) {
  const Layout layout = to.elementwise_layout({op.x, op.y});
  with_float(to[op.x].type, [&](auto zero) {
    using T = decltype(zero);
    with_activation(op.activation, [&](auto activation) {
      to.add(OpCategory::elementwise, to.threads_for(op.x),
             {reads(op.x, layout), writes(op.y, layout)},
             [n = to.count(op.x)](const Invocation& call) {
               activate_all<decltype(activation)::value>(call.threads, call.operand<const T>(0),
                                                         call.operand<T>(1), n);
             });
    });
  });
}

void lower(const ActivateGrad& op, Lowering& to) {
  const Layout layout = to.elementwise_layout({op.at, op.dy, op.dx});
  with_float(to[op.at].type, [&](auto zero) {
    using T = decltype(zero);
    with_activation(op.activation, [&](auto activation) {
      to.add(OpCategory::elementwise, to.threads_for(op.at),
             {reads(op.at, layout), reads(op.dy, layout), writes(op.dx, layout)},
             [n = to.count(op.at)](const Invocation& call) {
               activate_grad<decltype(activation)::value>(call.threads, call.operand<const T>(0),
                                                          call.operand<const T>(1),
                                                          call.operand<T>(2), n);
             });
    });
  });
}

}  // namespace crossover::cpu
