// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "../step_planner.h"
#include "operations.h"

namespace crossover::cuda {

// ---- Optimizers: one pass over all parameters, as few spans as their places in memory allow.

namespace {

using Span = UpdateSpan<Planned>;

/// Makes an array reach to the end of one behind it.
void reach(Operand& array, const Operand& last) {
  array.bytes = array.exists() ? last.offset + last.bytes - array.offset : 0;
}

/// Joins `next` to `span` where it begins right after it, but for padding, in every array. The
/// padding is zero in all of them and stays so. Copies lie as the parameters do.
bool extend(Span& span, const Span& next, std::int64_t alignment) {
  const std::int64_t gap = round_up(span.count * bytes(Type::f32), alignment) / bytes(Type::f32);
  for (const auto array : {&Span::w, &Span::g, &Span::m, &Span::v}) {
    const Operand& first = span.*array;
    const Operand& second = next.*array;
    if (first.exists() &&
        (first.type != second.type || first.offset + gap * bytes(first.type) != second.offset)) {
      return false;
    }
  }
  if (span.keep != next.keep || span.copy.exists() != next.copy.exists()) {
    return false;
  }
  for (const auto array : {&Span::w, &Span::g, &Span::m, &Span::v, &Span::copy}) {
    reach(span.*array, next.*array);
  }
  span.count = gap + next.count;
  return true;
}

/// Of the parameters, in the order in which they lie.
std::vector<std::size_t> by_place(const Update& op, const StepPlanner& step) {
  std::vector<std::size_t> all(op.parameters.size());
  std::iota(all.begin(), all.end(), 0);
  std::stable_sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) {
    return step.operand(op.parameters[a]).offset < step.operand(op.parameters[b]).offset;
  });
  return all;
}

}  // namespace

/// In launches of as many spans as one takes.
void plan_operation(const Update& op, StepPlanner& step) {
  const auto* adamw = std::get_if<AdamWOptions>(&op.rule);
  if (adamw != nullptr) {
    step.emit(AdamWTimeLaunch{step.operand(op.step), *adamw, op.gradient_factor});
  }
  std::vector<std::vector<Span>> groups;
  for (const std::size_t p : by_place(op, step)) {
    const auto state = [&](std::size_t of) {
      return of < op.states.size() ? step.operand(op.states[of][p]) : Operand{};
    };
    const Id parameter = op.parameters[p];
    Span span{.w = step.operand(parameter),
              .g = step.operand(op.gradients[p]),
              .m = state(0),
              .v = state(1),
              .copy = step.copy_of(parameter),
              .count = step.count(parameter)};
    if (adamw != nullptr) {
      span.keep = static_cast<float>(1 - adamw->learning_rate * op.decay_of(p));
    }
    if (!groups.empty() && extend(groups.back().back(), span, step.parameter_alignment())) {
      continue;
    }
    if (groups.empty() || groups.back().size() == max_spans) {
      groups.emplace_back();
    }
    groups.back().push_back(span);
  }
  for (std::vector<Span>& spans : groups) {
    step.emit(UpdateLaunch{std::move(spans), op.rule, op.gradient_factor});
  }
}

/// One launch for all that lie one after another; the padding between them is zero, too.
void plan_operation(const Zero& zero, StepPlanner& step) {
  std::vector<Id> ids = zero.tensors;
  std::stable_sort(ids.begin(), ids.end(),
                   [&](Id a, Id b) { return step.operand(a).offset < step.operand(b).offset; });
  std::vector<Span> spans;
  for (const Id id : ids) {
    const Span span{.w = step.operand(id), .count = step.count(id)};
    if (spans.empty() || !extend(spans.back(), span, step.parameter_alignment())) {
      spans.push_back(span);
    }
  }
  for (const Span& span : spans) {
    step.emit(ZeroLaunch{span.w, span.count});
  }
}

// ---- All reduce

/// A call of the library costs more than a few numbers do: one for all tensors that lie one after
/// another.
void plan_operation(const AllReduce& op, StepPlanner& step) {
  SumLaunch sum{.spans = {}, .beside = step.overlaps_sums()};
  for (const Id id : op.tensors) {
    const Operand tensor = step.operand(id);
    if (!sum.spans.empty()) {
      SumLaunch::Span& last = sum.spans.back();
      const std::int64_t padded =
          round_up(last.count * bytes(Type::f32), step.parameter_alignment());
      if (last.first.offset + padded == tensor.offset) {
        last.first.bytes = tensor.offset + tensor.bytes - last.first.offset;
        last.count = padded / bytes(Type::f32) + step.count(id);
        continue;
      }
    }
    sum.spans.push_back({.first = tensor, .count = step.count(id)});
  }
  step.emit(std::move(sum));
}

}  // namespace crossover::cuda
