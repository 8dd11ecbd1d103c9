// SPDX-License-Identifier: Apache-2.0
#include "../split.h"
#include "crossover/elementwise.h"
#include "operations.h"
#include "update_spans.h"

namespace crossover::cpu {
namespace {

/// Of an update, in float.
struct MomentumFactors {
  float learning_rate, momentum, gradient_factor;
};

void momentum(int threads, float* w, const float* g, float* velocity, std::int64_t count,
              const MomentumFactors& factors) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      crossover::momentum(w[i], factors.gradient_factor * g[i], velocity[i], factors.learning_rate,
                          factors.momentum);
    }
  });
}

}  // namespace

void lower(const Momentum& op, Lowering& to) {
  const MomentumFactors factors{.learning_rate = static_cast<float>(op.learning_rate),
                                .momentum = static_cast<float>(op.momentum),
                                .gradient_factor = static_cast<float>(op.gradient_factor)};
  for (const UpdateSpan& span :
       update_spans(to, {&op.parameters, &op.gradients, &op.velocities}, {})) {
    to.add(OpCategory::update, span.threads(to),
           {updates(span.first[0], span.layout), reads(span.first[1], span.layout),
            updates(span.first[2], span.layout)},
           [factors, n = span.floats](const Invocation& call) {
             cpu::momentum(call.threads, call.operand<float>(0), call.operand<const float>(1),
                           call.operand<float>(2), n, factors);
           });
  }
}

}  // namespace crossover::cpu
