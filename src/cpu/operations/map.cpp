// SPDX-License-Identifier: Apache-2.0
// Functions of each number by itself. The choice stands outside the loops, so that each is vector
// code of one function.
#include <variant>

#include "../split.h"
#include "../vector_maths.h"
#include "operations.h"

namespace crossover::cpu {

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

}  // namespace crossover::cpu
