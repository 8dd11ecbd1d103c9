// SPDX-License-Identifier: Apache-2.0
#include <variant>

#include "../places.h"
#include "../threads.h"
#include "../vector_math.h"
#include "crossover/float16.h"
#include "crossover/random.h"
#include "operations.h"

namespace crossover::cpu {

// ---- An activation and its gradient. The choice stands outside the loops, so that each is vector
// code of one activation.

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

// ---- Functions of each number by itself. The choice stands outside the loops, so that each is
// vector code of one function.

void lower(const Map& op, Lowering& to) {
  const Layout layout = to.elementwise_layout({op.x, op.y});
  with_float(to[op.x].type, [&](auto zero) {
    using T = decltype(zero);
    std::visit(
        [&](const auto& function) {
          to.add(OpCategory::elementwise, to.threads_for(op.x),
                 {reads(op.x, layout), writes(op.y, layout)},
                 [n = to.count(op.x), function](const Invocation& call) {
                   const T* x = call.operand<const T>(0);
                   T* y = call.operand<T>(1);
                   split(call.threads, n, [=](std::int64_t begin, std::int64_t end) {
                     for_each_vector(end - begin, [=](auto part, std::int64_t i) {
                       const Floats at = load(part, x + begin + i);
                       store(part, function.value(VectorMaths(), at), y + begin + i);
                     });
                   });
                 });
        },
        op.function);
  });
}

/// dx may be dy.
void lower(const MapGrad& op, Lowering& to) {
  const Layout layout = to.elementwise_layout({op.x, op.dy, op.dx});
  with_float(to[op.x].type, [&](auto zero) {
    using T = decltype(zero);
    std::visit(
        [&](const auto& function) {
          to.add(OpCategory::elementwise, to.threads_for(op.x),
                 {reads(op.x, layout), reads(op.dy, layout), writes(op.dx, layout)},
                 [n = to.count(op.x), function](const Invocation& call) {
                   const T* x = call.operand<const T>(0);
                   const T* dy = call.operand<const T>(1);
                   T* dx = call.operand<T>(2);
                   split(call.threads, n, [=](std::int64_t begin, std::int64_t end) {
                     for_each_vector(end - begin, [=](auto part, std::int64_t i) {
                       const Floats at = load(part, x + begin + i);
                       store(part,
                             load(part, dy + begin + i) * function.derivative(VectorMaths(), at),
                             dx + begin + i);
                     });
                   });
                 });
        },
        op.function);
  });
}

// ---- Add

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

// ---- Multiply

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

// ---- Elements are counted in the plain layout, which both tensors are therefore taken in.

namespace {

struct Mask {
  std::int64_t seed;
  double probability;
  std::int32_t offset;

  template <class Op>
  explicit Mask(const Op& op)
      : seed(op.seed),
        probability(op.probability),
        offset(static_cast<std::int32_t>(offset_of_mask(op))) {}
};

template <class T>
void apply(int threads, const Mask& mask, std::int32_t step, const T* x, T* y, std::int64_t count) {
  const std::int32_t time = step + mask.offset;
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    const auto factor = static_cast<float>(1 / (1 - mask.probability));
    for (std::int64_t i = begin; i < end; ++i) {
      const double number = dropout_uniform(mask.seed, time, static_cast<std::uint64_t>(i));
      const float kept = widened(x[i]) * factor;
      y[i] = narrowed<T>(number < mask.probability ? 0.0F : kept);
    }
  });
}

}  // namespace

void lower(const Dropout& op, Lowering& to) {
  with_float(to[op.x].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(op.x),
           {reads(op.x), writes(op.y), updates(op.step)},
           [mask = Mask(op), draws = static_cast<std::int32_t>(op.draws),
            n = to.count(op.x)](const Invocation& call) {
             apply(call.threads, mask, *call.operand<std::int32_t>(2) += draws,
                   call.operand<const T>(0), call.operand<T>(1), n);
           });
  });
}

void lower(const DropoutGrad& op, Lowering& to) {
  with_float(to[op.dy].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::elementwise, to.threads_for(op.dy),
           {reads(op.dy), writes(op.dx), reads(op.step)},
           [mask = Mask(op), n = to.count(op.dy)](const Invocation& call) {
             apply(call.threads, mask, *call.operand<const std::int32_t>(2),
                   call.operand<const T>(0), call.operand<T>(1), n);
           });
  });
}

}  // namespace crossover::cpu
