// SPDX-License-Identifier: Apache-2.0
#include "../split.h"
#include "crossover/elementwise.h"
#include "operations.h"
#include "update_spans.h"

namespace crossover::cpu {
namespace {

void sgd(int threads, float* w, const float* g, std::int64_t count, float learning_rate) {
  split(threads, count, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      w[i] = crossover::sgd(w[i], g[i], learning_rate);
    }
  });
}

}  // namespace

void lower(const Sgd& op, Lowering& to) {
  const auto rate = static_cast<float>(op.learning_rate * op.gradient_factor);
  for (const UpdateSpan& span : update_spans(to, {&op.parameters, &op.gradients}, {})) {
    to.add(OpCategory::update, span.threads(to),
           {updates(span.first[0], span.layout), reads(span.first[1], span.layout)},
           [rate, n = span.floats](const Invocation& call) {
             cpu::sgd(call.threads, call.operand<float>(0), call.operand<const float>(1), n, rate);
           });
  }
}

}  // namespace crossover::cpu
