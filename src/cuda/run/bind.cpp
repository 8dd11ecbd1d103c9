// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <type_traits>
#include <variant>

#include "../libraries/library.h"
#include "../plan/launches/operand.h"
#include "executor.h"
#include "footprint.h"

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

/// By a kernel of ours. A launch that nothing calls does not compile.
template <template <template <class> class> class Of>
requires requires(const Of<Called>& of, const Site& site) { cuda::call(of, site); }
BoundLaunch bind(const Of<Planned>& launch, const Binding& binding) {
  return {category_of(launch), [launch, binding](const Position& now) {
            [[maybe_unused]] const Footprint footprint(launch, binding, now);
            cuda::call(Addresses{binding, now}(launch), binding.site());
          }};
}

Products& algorithms_for(const ProductLaunch& /*launch*/, const Binding& binding) {
  return *binding.products;
}
Convolutions& algorithms_for(const ConvolutionLaunch& /*launch*/, const Binding& binding) {
  return *binding.convolutions;
}
Sdpas& algorithms_for(const SdpaLaunch& /*launch*/, const Binding& binding) {
  return *binding.sdpas;
}

Workspace workspace_of(const Binding& binding) {
  return {binding.address(binding.workspace), binding.plan->workspace_bytes};
}

/// By one of a library's algorithms.
template <class Launched>
requires requires(Launched launch) { launch.form; }
BoundLaunch bind(const Launched& launch, const Binding& binding) {
  const Addresses fixed{binding, first_buffer};
  return {Launched::category, [made = algorithms_for(launch, binding).made(fixed(launch)), launch,
                               binding](const Position& now) {
            [[maybe_unused]] const Footprint footprint(launch, binding, now);
            made->execute(binding.stream, Addresses{binding, now}(launch), workspace_of(binding));
          }};
}

BoundLaunch bind(const SumLaunch& launch, const Binding& binding) {
  std::vector<FloatSpan> spans;
  spans.reserve(launch.spans.size());
  for (const SumLaunch::Span& span : launch.spans) {
    spans.push_back({binding.address<float>(span.first.offset), span.count});
  }
  if (!launch.beside) {
    return {SumLaunch::category, [spans, launch, binding](const Position& now) {
              const Footprint footprint(launch, binding, now);
              binding.collectives->sum(spans, binding.stream);
            }};
  }
  return {SumLaunch::category, [spans, launch, binding](const Position& now) {
            [[maybe_unused]] const Footprint footprint(launch, binding, now);
            binding.second->fork_from(binding.stream);
            binding.collectives->sum(spans, binding.second->get());
          }};
}

BoundLaunch bind(const SumsEndLaunch& /*launch*/, const Binding& binding) {
  return {SumsEndLaunch::category,
          [binding](const Position& /*now*/) { binding.second->join(binding.stream); }};
}

template <class Launched>
void choose(const Binding& binding, bool fastest) {
  for (const Launched& launch : launches_of<Launched>(*binding.plan)) {
    algorithms_for(launch, binding)
        .choose(Addresses{binding, first_buffer}(launch), fastest, workspace_of(binding),
                binding.stream);
  }
}

/// Each form of a kind.
template <class Launched>
void measure(const Binding& binding, Precision precision, Arithmetic& found) {
  std::set<decltype(Launched::form)> measured;
  for (const Launched& launch : launches_of<Launched>(*binding.plan)) {
    if (!measured.insert(launch.form).second) {
      continue;
    }
    const auto of = Addresses{binding, first_buffer}(launch);
    const auto made = algorithms_for(launch, binding).made(of);
    const Workspace workspace = workspace_of(binding);
    if (precision == Precision::tf32) {
      found.tf32 = std::max(found.tf32, measure_tf32_factors(*made, of, workspace, binding.stream));
    }
    if constexpr (std::is_same_v<Launched, ProductLaunch>) {
      found.relu_passes_zero |= writes_mask(launch.form.epilogue) &&
                                measure_mask_at_zero(*made, of, workspace, binding.stream);
    }
  }
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
  of.networks = binding.plan->networks;
  return of;
}

}  // namespace

Site Binding::site() const {
  static_assert(sizeof(AdamWFactors<float>) <= factors_bytes);
  return {.stream = stream,
          .networks = plan->networks,
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
    const Footprint footprint(step, binding);
    gather(binding.stream, gather_arguments(step, binding));
  }
}

void gather_in_loop(const StepPlan& step, const Binding& binding, const LoopCondition& condition) {
  const Footprint footprint(step, binding);
  gather_in_loop(binding.stream, gather_arguments(step, binding), condition);
}

void choose_algorithms(const Binding& binding, const CompileOptions& options) {
  choose<ProductLaunch>(binding, options.products == ProductChoice::autotuned);
  choose<ConvolutionLaunch>(binding, options.convolutions == ConvolutionChoice::benchmark);
  choose<SdpaLaunch>(binding, options.convolutions == ConvolutionChoice::benchmark);
}

Arithmetic measure_arithmetic(const Binding& binding, Precision precision) {
  Arithmetic found{.tf32 = Tf32Factors::exact};
  measure<ProductLaunch>(binding, precision, found);
  measure<ConvolutionLaunch>(binding, precision, found);
  return found;
}

}  // namespace crossover::cuda
