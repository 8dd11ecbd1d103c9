// SPDX-License-Identifier: Apache-2.0
#include <variant>

#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

/// Nothing where an optimizer has written it. Joins the one before it where that is a Cast as
/// well: a step in 16 bits may begin with many.
void plan_operation(const Cast& cast, StepPlanner& step) {
  const Operand kept = step.kept(cast.y);
  const Operand y = step.operand(cast.y);
  if (kept.exists() && kept.offset == y.offset) {
    return;
  }
  const CastSpan<Planned> one{kept.exists() ? kept : step.operand(cast.x), y, step.count(cast.x)};
  auto* before = std::get_if<CastLaunch>(step.last_launch());
  if (before != nullptr && before->casts.size() < max_spans &&
      before->casts.front().x.type == one.x.type && before->casts.front().y.type == one.y.type) {
    before->casts.push_back(one);
  } else {
    step.emit(CastLaunch{{one}});
  }
}

}  // namespace crossover::cuda
