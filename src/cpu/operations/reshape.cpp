// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "../split.h"
#include "operations.h"

namespace crossover::cpu {

void lower(const Reshape& op, Lowering& to) {
  const bool is_plain = to.settle(op.x, {}).is_plain();
  if (is_plain != to.settle(op.y, {}).is_plain()) {
    to.add_reorder(OpCategory::reorder, op.x, op.y);
    return;
  }
  to.add(OpCategory::elementwise, to.threads_for(op.x), {reads(op.x), writes(op.y)},
         [n = bytes(to[op.x])](const Invocation& call) {
           const auto* from = call.operand<const std::byte>(0);
           auto* into = call.operand<std::byte>(1);
           split(
               call.threads, n,
               [=](std::int64_t begin, std::int64_t end) {
                 std::memcpy(into + begin, from + begin, static_cast<std::size_t>(end - begin));
               },
               64);
         });
}

}  // namespace crossover::cpu
