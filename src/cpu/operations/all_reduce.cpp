// SPDX-License-Identifier: Apache-2.0
#include "crossover/ranks.h"
#include "operations.h"
#include "update_spans.h"

namespace crossover::cpu {

/// One call for all tensors that lie one after another: a call costs more than a few numbers do.
void lower(const AllReduce& op, Lowering& to) {
  for (const UpdateSpan& span : update_spans(to, {&op.tensors}, {})) {
    to.add(OpCategory::communication, 1, {updates(span.first[0], span.layout)},
           [ranks = to.ranks(), overlaps = to.overlaps_sums(),
            n = static_cast<std::size_t>(span.floats)](const Invocation& call) {
             const std::span<float> values(call.operand<float>(0), n);
             if (overlaps) {
               ranks->start_sum(values);
             } else {
               ranks->sum(values);
             }
           });
  }
}

}  // namespace crossover::cpu
