// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../split.h"
#include "operations.h"
#include "update_spans.h"

namespace crossover::cpu {

void lower(const Zero& op, Lowering& to) {
  for (const UpdateSpan& span : update_spans(to, {&op.tensors}, {})) {
    to.add(OpCategory::elementwise, span.threads(to), {writes(span.first[0], span.layout)},
           [n = span.floats](const Invocation& call) {
             auto* values = call.operand<float>(0);
             split(call.threads, n, [=](std::int64_t begin, std::int64_t end) {
               std::fill(values + begin, values + end, 0.0F);
             });
           });
  }
}

}  // namespace crossover::cpu
