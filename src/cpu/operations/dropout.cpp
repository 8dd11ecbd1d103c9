// SPDX-License-Identifier: Apache-2.0
// Elements are counted in the plain layout, which both tensors are therefore taken in.
#include "../split.h"
#include "crossover/float16.h"
#include "crossover/random.h"
#include "operations.h"

namespace crossover::cpu {
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
