// SPDX-License-Identifier: Apache-2.0
// Optimizers: one pass over all parameters, as few spans as their places in memory allow.
#include <utility>
#include <vector>

#include "../planning/round_up.h"
#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {
namespace {

/// Joins `next` to `span` where it begins right after it, but for padding, in every array. The
/// padding is zero in all of them and stays so. Copies lie as the parameters do.
bool extend(Span& span, const Span& next, std::int64_t alignment) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t gap = round_up(span.count * size, alignment);
  for (std::size_t i = 0; i < span.offsets.size(); ++i) {
    if (span.offsets[i] + gap != next.offsets[i]) {
      return false;
    }
  }
  if (span.weight_decay != next.weight_decay || span.copy.exists() != next.copy.exists()) {
    return false;
  }
  span.count = gap / size + next.count;
  return true;
}

/// In groups of what one launch takes. `arrays`: parameters, gradients, then states.
std::vector<std::vector<Span>> spans_of(const StepPlanner& step,
                                        const std::vector<const std::vector<Id>*>& arrays,
                                        const std::vector<double>& weight_decay) {
  std::vector<std::vector<Span>> groups;
  for (std::size_t p = 0; p < arrays[0]->size(); ++p) {
    Span span{.offsets = {},
              .count = step.count((*arrays[0])[p]),
              .weight_decay = weight_decay.empty() ? 0 : weight_decay[p],
              .copy = step.copy_of((*arrays[0])[p])};
    for (const auto* array : arrays) {
      span.offsets.push_back(step.operand((*array)[p]).offset);
    }
    if (!groups.empty() && extend(groups.back().back(), span, step.parameter_alignment())) {
      continue;
    }
    if (groups.empty() || groups.back().size() == max_spans) {
      groups.emplace_back();
    }
    groups.back().push_back(std::move(span));
  }
  return groups;
}

}  // namespace

void plan_operation(const Sgd& sgd, StepPlanner& step) {
  for (auto& spans : spans_of(step, {&sgd.parameters, &sgd.gradients}, {})) {
    step.emit(SgdLaunch{std::move(spans), sgd.learning_rate * sgd.gradient_factor});
  }
}

void plan_operation(const AdamW& adamw, StepPlanner& step) {
  step.emit(AdamWTimeLaunch{step.operand(adamw.step), adamw.learning_rate, adamw.beta1, adamw.beta2,
                            adamw.epsilon, adamw.gradient_factor});
  for (auto& spans : spans_of(step, {&adamw.parameters, &adamw.gradients, &adamw.m, &adamw.v},
                              adamw.weight_decay)) {
    step.emit(AdamWLaunch{std::move(spans), adamw.learning_rate});
  }
}

}  // namespace crossover::cuda
