// SPDX-License-Identifier: Apache-2.0
// AdamW: its time first, then a pass over the parameters of each weight decay.
#include "../split.h"
#include "crossover/elementwise.h"
#include "operations.h"
#include "update_spans.h"

namespace crossover::cpu {
namespace {

void adamw(int threads, float* w, const float* g, float* m, float* v, std::int64_t count,
           const AdamWFactors<float>& factors) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    const AdamWFactors<float> f = factors;
    for (std::int64_t i = begin; i < end; ++i) {
      crossover::adamw(w[i], g[i], m[i], v[i], f);
    }
  });
}

}  // namespace

void lower(const AdamW& op, Lowering& to) {
  to.add(OpCategory::update, 1, {updates(op.step)},
         [](const Invocation& call) { ++*call.operand<std::int32_t>(0); });
  const AdamWConstants constants{.learning_rate = op.learning_rate,
                                 .beta1 = op.beta1,
                                 .beta2 = op.beta2,
                                 .epsilon = op.epsilon,
                                 .gradient_factor = op.gradient_factor};
  for (const UpdateSpan& span :
       update_spans(to, {&op.parameters, &op.gradients, &op.m, &op.v}, op.weight_decay)) {
    to.add(
        OpCategory::update, span.threads(to),
        {updates(span.first[0], span.layout), reads(span.first[1], span.layout),
         updates(span.first[2], span.layout), updates(span.first[3], span.layout), reads(op.step)},
        [constants, n = span.floats, decay = span.weight_decay](const Invocation& call) {
          const auto factors =
              adamw_factors<float>(constants, decay, *call.operand<const std::int32_t>(4));
          cpu::adamw(call.threads, call.operand<float>(0), call.operand<const float>(1),
                     call.operand<float>(2), call.operand<float>(3), n, factors);
        });
  }
}

}  // namespace crossover::cpu
