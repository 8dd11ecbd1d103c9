// SPDX-License-Identifier: Apache-2.0
// An activation and its gradient. The choice stands outside the loops, so that each compiles to
// vector code of one activation.
#include "../split.h"
#include "crossover/elementwise.h"
#include "crossover/float16.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

template <Activation activation, class T>
void activate_as(int threads, const T* x, T* y, std::int64_t count) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = narrowed<T>(crossover::activate(activation, widened(x[i])));
    }
  });
}

template <class T>
void activate(int threads, Activation activation, const T* x, T* y, std::int64_t count) {
  switch (activation) {
    case Activation::identity:
      return activate_as<Activation::identity>(threads, x, y, count);
    case Activation::relu:
      return activate_as<Activation::relu>(threads, x, y, count);
    case Activation::sigmoid:
      return activate_as<Activation::sigmoid>(threads, x, y, count);
  }
}

template <Activation activation, class T>
void activate_grad_as(int threads, const T* y, const T* dy, T* dx, std::int64_t count) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      dx[i] = narrowed<T>(widened(dy[i]) * derivative_from_result(activation, widened(y[i])));
    }
  });
}

/// dx = dy * derivative at y; dx may be dy.
template <class T>
void activate_grad(int threads, Activation activation, const T* y, const T* dy, T* dx,
                   std::int64_t count) {
  switch (activation) {
    case Activation::identity:
      return activate_grad_as<Activation::identity>(threads, y, dy, dx, count);
    case Activation::relu:
      return activate_grad_as<Activation::relu>(threads, y, dy, dx, count);
    case Activation::sigmoid:
      return activate_grad_as<Activation::sigmoid>(threads, y, dy, dx, count);
  }
}

}  // namespace

void lower(const Activate& op, Lowering& to) {
  const Layout layout = to.elementwise_layout({op.x, op.y});
  with_float(to[op.x].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(
        OpCategory::elementwise, to.threads_for(op.x), {reads(op.x, layout), writes(op.y, layout)},
        [activation = op.activation, n = to.count(op.x)](const Invocation& call) {
          cpu::activate(call.threads, activation, call.operand<const T>(0), call.operand<T>(1), n);
        });
  });
}

void lower(const ActivateGrad& op, Lowering& to) {
  const Layout layout = to.elementwise_layout({op.y, op.dy, op.dx});
  with_float(to[op.y].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(op.y),
           {reads(op.y, layout), reads(op.dy, layout), writes(op.dx, layout)},
           [activation = op.activation, n = to.count(op.y)](const Invocation& call) {
             activate_grad(call.threads, activation, call.operand<const T>(0),
                           call.operand<const T>(1), call.operand<T>(2), n);
           });
  });
}

}  // namespace crossover::cpu
