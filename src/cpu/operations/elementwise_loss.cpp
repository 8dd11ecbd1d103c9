// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../vector_math.h"
#include "operations.h"

namespace crossover::cpu {
namespace {

struct LossOfVector {
  Floats value, slope;
};

template <LossFunction function>
LossOfVector loss_of(Floats x, Floats target) {
  if constexpr (function == LossFunction::mse) {
    const Floats difference = x - target;
    return {difference * difference, 2.0F * difference};
  } else {
    const Floats e = exponential(where(x < all(0), x, -x));
    const Floats less = e / (1.0F + e);  // as in crossover/elementwise.h
    return {where(x < all(0), all(0), x) - x * target + logarithm_of_1_plus(e),
            where(x < all(0), less - target, (1.0F - target) - less)};
  }
}

/// Writes dlogits; returns the loss.
template <LossFunction function, class T>
float elementwise_loss(int threads, const float* logits, const float* targets, std::int64_t count,
                       float scale, T* dlogits) {
  const float factor = scale / static_cast<float>(count);
  constexpr std::int64_t part_size = 4096;  // that float sums well
  const std::int64_t parts = (count + part_size - 1) / part_size;
  double loss = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static) reduction(+ : loss)
  for (std::int64_t p = 0; p < parts; ++p) {
    const std::int64_t begin = p * part_size;
    Floats sums{};
    double rest = 0;
    for_each_vector(std::min(part_size, count - begin), [&](auto part, std::int64_t i) {
      const std::int64_t at = begin + i;
      const LossOfVector of = loss_of<function>(load(part, logits + at), load(part, targets + at));
      store(part, of.slope * factor, dlogits + at);
      if constexpr (std::is_same_v<decltype(part), WholeVector>) {
        sums += of.value;
      } else {
        for (std::size_t lane = 0; lane < part.size(); ++lane) {
          rest += static_cast<double>(of.value[lane]);
        }
      }
    });
    for (int lane = 0; lane < lanes; ++lane) {
      rest += static_cast<double>(sums[lane]);
    }
    loss += rest;
  }
  return static_cast<float>(loss / static_cast<double>(count));
}

template <LossFunction function>
void lower_as(const ElementwiseLoss& op, Lowering& to) {
  with_float(to[op.dlogits].type, [&](auto zero) {
    using T = decltype(zero);
    to.add(OpCategory::loss, to.threads_for(op.logits),
           {reads(op.logits), reads(op.targets), updates(op.loss), writes(op.dlogits)},
           [n = to.count(op.logits), scale = static_cast<float>(op.scale)](const Invocation& call) {
             call.operand<float>(2)[call.now.run] = elementwise_loss<function>(
                 call.threads, call.operand<const float>(0), call.operand<const float>(1), n, scale,
                 call.operand<T>(3));
           });
  });
}

}  // namespace

void lower(const ElementwiseLoss& op, Lowering& to) {
  op.function == LossFunction::mse ? lower_as<LossFunction::mse>(op, to)
                                   : lower_as<LossFunction::bce>(op, to);
}

}  // namespace crossover::cpu
