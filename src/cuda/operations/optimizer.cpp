// SPDX-License-Identifier: Apache-2.0
// Optimizers: one pass over all parameters, as few spans as their places in memory allow.
#include <utility>
#include <vector>

#include "../planning/step_planner.h"
#include "operations.h"

namespace crossover::cuda {
namespace {

using Span = UpdateSpan<Planned>;

/// Joins `next` to `span` where it begins right after it, but for padding, in every array. The
/// padding is zero in all of them and stays so. Copies lie as the parameters do.
bool extend(Span& span, const Span& next, std::int64_t alignment) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t gap = round_up(span.count * size, alignment);
  for (const auto array : {&Span::w, &Span::g, &Span::m, &Span::v}) {
    if ((span.*array).exists() && (span.*array).offset + gap != (next.*array).offset) {
      return false;
    }
  }
  if (span.keep != next.keep || span.copy.exists() != next.copy.exists()) {
    return false;
  }
  span.count = gap / size + next.count;
  return true;
}

/// In groups of what one launch takes. complete(span, p) sets what the p-th has besides.
template <class Optimizer, class Complete>
std::vector<std::vector<Span>> spans_of(const Optimizer& optimizer, const StepPlanner& step,
                                        const Complete& complete) {
  std::vector<std::vector<Span>> groups;
  for (std::size_t p = 0; p < optimizer.parameters.size(); ++p) {
    const Id parameter = optimizer.parameters[p];
    Span span{.w = step.operand(parameter),
              .g = step.operand(optimizer.gradients[p]),
              .copy = step.copy_of(parameter),
              .count = step.count(parameter)};
    complete(span, p);
    if (!groups.empty() && extend(groups.back().back(), span, step.parameter_alignment())) {
      continue;
    }
    if (groups.empty() || groups.back().size() == max_spans) {
      groups.emplace_back();
    }
    groups.back().push_back(span);
  }
  return groups;
}

}  // namespace

void plan_operation(const Sgd& sgd, StepPlanner& step) {
  for (auto& spans : spans_of(sgd, step, [](Span& /*span*/, std::size_t /*p*/) {})) {
    step.emit(
        SgdLaunch{std::move(spans), static_cast<float>(sgd.learning_rate * sgd.gradient_factor)});
  }
}

void plan_operation(const AdamW& adamw, StepPlanner& step) {
  step.emit(AdamWTimeLaunch{step.operand(adamw.step),
                            {.learning_rate = adamw.learning_rate,
                             .beta1 = adamw.beta1,
                             .beta2 = adamw.beta2,
                             .epsilon = adamw.epsilon,
                             .gradient_factor = adamw.gradient_factor}});
  const auto complete = [&](Span& span, std::size_t p) {
    span.m = step.operand(adamw.m[p]);
    span.v = step.operand(adamw.v[p]);
    span.keep = static_cast<float>(1 - adamw.learning_rate * adamw.weight_decay[p]);
  };
  for (auto& spans : spans_of(adamw, step, complete)) {
    step.emit(AdamWLaunch{std::move(spans)});
  }
}

}  // namespace crossover::cuda
