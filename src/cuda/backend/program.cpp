// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

namespace crossover::cuda {

CudaProgram::CudaProgram(Workload workload, LaunchPlan plan, SharedAlgorithms algorithms,
                         std::shared_ptr<Collectives> collectives, const CompileOptions& options)
    : workload_(std::move(workload)),
      plan_(std::move(plan)),
      algorithms_(std::move(algorithms)),
      collectives_(std::move(collectives)),
      tensors_(workload_, plan_),
      losses_(plan_.mode),
      second_(plan_.mode),
      compute_(make_stream()),
      running_{.workload = workload_,
               .plan = plan_,
               .tensors = tensors_,
               .losses = losses_,
               .steps = steps_,
               .binding = {.block = tensors_.block(),
                           .stream = compute_.get(),
                           .plan = &plan_,
                           .products = algorithms_.products.get(),
                           .convolutions = algorithms_.convolutions.get(),
                           .sdpas = algorithms_.sdpas.get(),
                           .collectives = collectives_.get(),
                           .second = &second_,
                           .workspace = plan_.workspace},
               .second = second_,
               .next_run = next_run_} {
  tensors_.clear(compute_.get());
  choose_algorithms(running_.binding, options);
  facts_ = count_facts();
  facts_.arithmetic = measure_arithmetic(running_.binding, options.precision);
  tensors_.clear(compute_.get());
  steps_ = bind_steps(running_.binding, second_.get());
  executor_ = make_executor(running_);
  running_.wait();
}

void CudaProgram::upload(Id id, std::span<const std::byte> from) {
  tensors_.upload(id, from, compute_.get());
  const auto copy = std::find_if(plan_.copies.begin(), plan_.copies.end(),
                                 [id](const ParameterCopy& one) { return one.parameter == id; });
  if (copy == plan_.copies.end()) {
    return;
  }
  const auto at = [&](Id tensor, std::int64_t offset) {
    return Operand{
        .offset = offset, .bytes = bytes(workload_[tensor]), .type = workload_[tensor].type};
  };
  const Operand parameter = at(id, plan_[id].offset);
  const Operand in_16_bits = at(copy->copy, copy->offset);
  call(CastLaunch{{{parameter, in_16_bits, elements(workload_[id].shape)}}}, running_.binding);
  running_.wait();
}

void CudaProgram::download(Id id, std::span<std::byte> to) {
  tensors_.download(id, to, compute_.get());
}

void CudaProgram::enqueue(std::int64_t first, std::int64_t count) {
  if (count > 0) {
    executor_->enqueue(first, count);
  }
}

ProgramFacts CudaProgram::count_facts() const {
  ProgramFacts facts{.bytes = plan_.bytes,
                     .launches = count_launches(workload_, plan_),
                     .reorders = count_reorders(workload_, plan_)};
  if (plan_.mode.execution == Execution::graph_epoch) {
    facts.graph_loops = std::ssize(plan_.loops);
  }
  if (plan_.mode.is_graph()) {
    facts.graph_form = GraphForm{.loops = !plan_.loops.empty(), .streams = plan_.forks() ? 2 : 1};
  }
  const StepPlan& step = plan_.steps.at(
      static_cast<std::size_t>(workload_.order.empty() ? 0 : workload_.order[0].step));
  for (const Launch& launch : step.launches) {
    if (const auto* convolution = std::get_if<ConvolutionLaunch>(&launch)) {
      const ConvolutionForm& form = convolution->form;
      if (const std::string engine = algorithms_.convolutions->name(form); !engine.empty()) {
        ++facts.convolutions[short_name(form.pass) + " " + engine +
                             (form.is_fused() ? " fused" : "")];
      }
    } else if (const auto* sdpa = std::get_if<SdpaLaunch>(&launch)) {
      if (const std::string engine = algorithms_.sdpas->name(sdpa->form); !engine.empty()) {
        ++facts.convolutions[short_name(sdpa->form) + " " + engine +
                             (sdpa->form.repeats ? "" : ", does not repeat")];
      }
    } else if (std::holds_alternative<AttentionLaunch>(launch)) {
      ++facts.convolutions["attention forward own"];
    } else if (std::holds_alternative<AttentionGradQueriesLaunch>(launch)) {
      ++facts.convolutions["attention backward own"];
    }
  }
  return facts;
}

}  // namespace crossover::cuda
