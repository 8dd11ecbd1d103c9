// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

#include <cstddef>
#include <type_traits>
#include <variant>

#include "fields.h"

namespace crossover::cuda {
namespace {

/// Turns what is planned into what is called, field by field.
struct Addresses {
  const Binding& binding;
  const Position& now;

  Address operator()(const Operand& operand) const { return binding.address(operand, now); }
  template <template <template <class> class> class Of>
  Of<Called> operator()(const Of<Planned>& planned) const {
    return with_turned_fields<Of<Called>>(planned, *this);
  }
  template <template <template <class> class> class Span>
  CalledSpans<Span<Called>> operator()(const std::vector<Span<Planned>>& spans) const {
    CalledSpans<Span<Called>> called;
    for (const Span<Planned>& span : spans) {
      called.span[called.count++] = (*this)(span);
    }
    return called;
  }
  template <class Value>
  Value operator()(const Value& value) const {
    return value;
  }
};

template <class Launched>
OpCategory category_of(const Launched& launch) {
  if constexpr (std::is_same_v<Launched, ReshapeLaunch>) {
    return launch.moves() ? OpCategory::reorder : OpCategory::elementwise;
  } else {
    return Launched::category;
  }
}

/// One of our kernels. A launch without a call() does not compile.
template <template <template <class> class> class Of>
BoundLaunch bind(const Of<Planned>& launch, const Binding& binding) {
  return {category_of(launch), [launch, binding](const Position& now) {
            cuda::call(Addresses{binding, now}(launch), binding.site());
          }};
}

BoundLaunch bound(const Launch& launch, const Binding& binding) {
  return std::visit([&](const auto& what) { return bind(what, binding); }, launch);
}

GatherArguments gather_arguments(const StepPlan& step, const Binding& binding) {
  GatherArguments of;
  for (const StagedInput& input : step.inputs) {
    of.span[of.count++] = {
        .from = binding.address<const std::byte>((*binding.plan)[input.source].offset),
        .to = binding.address<std::byte>(input.staged),
        .row_bytes = input.row_bytes,
        .unit = input.unit,
        .count = input.bytes / input.unit};
  }
  of.run = binding.site().counter.run;
  of.order = binding.address<const OrderedRun>(binding.plan->order);
  return of;
}

}  // namespace

Site Binding::site() const {
  static_assert(sizeof(AdamWFactors<float>) <= factors_bytes);
  return {.stream = stream,
          .counter = {.run = address<std::int64_t>(plan->run), .runs = plan->runs},
          .row_losses = address<float>(plan->row_losses),
          .factors = address<AdamWFactors<float>>(plan->factors)};
}

std::vector<BoundStep> bind_steps(const Binding& binding, cudaStream_t second) {
  std::vector<BoundStep> steps;
  for (const StepPlan& step : binding.plan->steps) {
    BoundStep& launches = steps.emplace_back();
    for (const Launch& launch : step.launches) {
      launches.push_back(bound(launch, binding));
    }
    for (const SideBySide& parts : step.side_by_side) {
      for (std::size_t i = parts.second; i < parts.end; ++i) {
        launches[i].in_second_stream =
            bound(step.launches[i], in_second_stream(binding, second)).call;
      }
    }
  }
  return steps;
}

void call(const CastLaunch& cast, const Binding& binding) {
  bind(cast, binding).call(first_buffer);
}

void gather(const StepPlan& step, const Binding& binding) {
  if (!step.inputs.empty()) {
    gather(binding.stream, gather_arguments(step, binding));
  }
}

void gather_in_loop(const StepPlan& step, const Binding& binding, const LoopCondition& condition) {
  gather_in_loop(binding.stream, gather_arguments(step, binding), condition);
}

}  // namespace crossover::cuda
