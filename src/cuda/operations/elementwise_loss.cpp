// SPDX-License-Identifier: Apache-2.0
// One launch of one block for a small batch; else one of many blocks and one that sums what each of
// them has summed.
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {

void plan_operation(const ElementwiseLoss& loss, StepPlanner& step) {
  const std::int64_t count = step.count(loss.logits);
  const std::int64_t parts = loss_parts(count);
  const bool advance = step.is_last_of_its_kind();
  step.emit(
      ElementwiseLossLaunch{.logits = step.operand(loss.logits),
                            .targets = step.operand(loss.targets),
                            .loss = step.operand(loss.loss),
                            .dlogits = step.operand(loss.dlogits),
                            .function = loss.function,
                            .count = count,
                            .parts = parts,
                            .factor = static_cast<float>(loss.scale / static_cast<double>(count)),
                            .advance = advance && parts == 1});
  if (parts > 1) {
    step.emit(MeanLossLaunch{step.operand(loss.loss), parts, count, advance});
  }
}

}  // namespace crossover::cuda
