// SPDX-License-Identifier: Apache-2.0
// Takes the pieces of single steps that profile.h puts together.
#include <algorithm>
#include <functional>
#include <vector>

#include "program.h"

namespace crossover::cuda {

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
