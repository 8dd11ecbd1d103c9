// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace crossover::cuda {

// ---- Program

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

// ---- Takes the pieces of single steps that profile.h puts together.

Profile CudaProgram::profile() {
  wait();
  RunSeconds run;
  run.wait = host_seconds([&] {
    running_.set_run(0);
    wait();
  });
  const double between_events = device_seconds(compute_.get(), {[] {}}).front();
  for (std::size_t s = 0; s < steps_.size() && !plan_.persistent; ++s) {
    run.steps.push_back(profile_step(static_cast<int>(s), between_events));
  }
  if (plan_.persistent) {
    run.steps.push_back(profile_order(between_events));
  } else if (executor_->issues_order_at_once()) {
    running_.set_run(0);
    run.host_once = host_seconds([&] { enqueue(0, running_.runs()); }, [&] { wait(); });
  }
  running_.set_run(0);
  wait();
  return combine(run, plan_.mode.placement, plan_.mode.loss_every_step);
}

/// One kernel, which nothing times from within: all of it counts as products.
StepSeconds CudaProgram::profile_order(double between_events) {
  const auto all = [&] { enqueue(0, running_.runs()); };
  const double time = device_seconds(compute_.get(), {all}).front() - between_events;
  return {.runs = 1,
          .device = {{OpCategory::product, std::max(0.0, time)}},
          .host = host_seconds(all, [&] { wait(); })};
}

StepSeconds CudaProgram::profile_step(int index, double between_events) {
  StepSeconds seconds;
  std::int64_t run = -1;
  for (std::int64_t r = 0; r < running_.runs(); ++r) {
    if (running_.run(r).step == index) {
      run = run < 0 ? r : run;
      ++seconds.runs;
    }
  }
  if (seconds.runs == 0) {
    return seconds;
  }
  const RunMode& mode = plan_.mode;
  const Position position{.first_row = running_.run(run).first_row,
                          .buffer = mode.in_place ? Position::in_place : 0};
  // Whatever has counted on before: the step gathers the rows of a run that is its own.
  const auto at_its_run = [this, run] { running_.set_run(run); };
  std::vector<std::function<void()>> pieces{at_its_run};
  std::vector<OpCategory> kinds;  // of the pieces behind it
  if (mode.gathers() && !mode.in_place &&
      !plan_.steps[static_cast<std::size_t>(index)].inputs.empty()) {
    pieces.emplace_back([this, index] { running_.gather(index); });
    kinds.push_back(OpCategory::elementwise);
  }
  for (const BoundLaunch& launch : steps_[static_cast<std::size_t>(index)]) {
    pieces.emplace_back([&launch, &position] { launch.call(position); });
    kinds.push_back(launch.category);
  }
  if (mode.loss_every_step) {
    pieces.emplace_back([this, run] { losses_.copy(running_.binding, run); });
    kinds.push_back(OpCategory::copy_from_device);
  }
  const auto stage = [this, run] { running_.stage(run, 0, compute_.get()); };
  const bool staged = !mode.is_resident();
  const bool staged_on_stream = staged && mode.placement != Placement::pageable;
  if (staged_on_stream) {
    pieces.emplace_back(stage);
  }
  const std::vector<double> times = device_seconds(compute_.get(), pieces);
  const auto without_events = [&](double time) { return std::max(0.0, time - between_events); };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    seconds.device[kinds[i]] += without_events(times[i + 1]);
  }
  if (staged_on_stream) {
    seconds.copy = without_events(times.back());
  } else if (staged) {
    seconds.copy = host_seconds(stage, [&] { wait(); });
  }
  if (executor_->issues_order_at_once()) {
    return seconds;
  }
  at_its_run();
  seconds.host = host_seconds(
      [&] {
        if (staged_on_stream) {
          stage();
        }
        executor_->issue(run, position);
      },
      [&] {
        wait();
        at_its_run();
        wait();
      });
  return seconds;
}

}  // namespace crossover::cuda
