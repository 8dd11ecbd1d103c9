// SPDX-License-Identifier: Apache-2.0
// Takes the pieces of single steps that profile.h puts together.
#include <algorithm>
#include <functional>
#include <vector>

#include "kernels/loss.cuh"
#include "program.h"
#include "timing.h"

namespace crossover::cuda {

Profile CudaProgram::profile() {
  finish();
  RunSeconds run;
  run.wait = host_seconds([&] {
    set_run(compute_.get(), run_counter(), 0);
    finish();
  });
  const double between_events = device_seconds(compute_.get(), {[] {}}).front();
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    run.steps.push_back(profile_step(static_cast<int>(s), between_events));
  }
  if (epoch_) {
    for (StepSeconds& step : run.steps) {
      step.host = 0;
    }
    run.host_once = host_seconds([&] { enqueue(0, runs()); }, [&] { finish(); });
  }
  finish();
  return combine(run, options_.placement, options_.loss_every_step);
}

StepSeconds CudaProgram::profile_step(int index, double between_events) {
  const BoundStep& step = steps_[static_cast<std::size_t>(index)];
  StepSeconds seconds;
  std::int64_t run = -1;
  for (std::int64_t r = 0; r < runs(); ++r) {
    if (what(r).step == index) {
      run = run < 0 ? r : run;
      ++seconds.runs;
    }
  }
  if (seconds.runs == 0) {
    return seconds;
  }
  set_run(compute_.get(), run_counter(), 0);
  const int buffer = runs_in_place() || epoch_ ? Position::in_place : 0;
  const Position position{.first_row = what(run).first_row, .buffer = buffer};
  std::vector<std::function<void()>> pieces;
  std::vector<OpCategory> kinds;
  for (const BoundCall& bound : step.calls) {
    pieces.emplace_back([&bound, &position] { bound.call(position); });
    kinds.push_back(bound.kind);
  }
  if (options_.loss_every_step) {
    pieces.emplace_back([this, run] { copy_loss(run); });
    kinds.push_back(OpCategory::copy_from_device);
  }
  const bool staged = plan_.buffers > 0 && buffer >= 0;
  const bool staged_on_stream = staged && options_.placement != Placement::pageable;
  if (staged_on_stream) {
    pieces.emplace_back([this, run] { stage(run, 0, compute_.get()); });
  }
  const std::vector<double> times = device_seconds(compute_.get(), pieces);
  const auto without_events = [&](double time) { return std::max(0.0, time - between_events); };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    seconds.device[kinds[i]] += without_events(times[i]);
  }
  if (staged_on_stream) {
    seconds.copy = without_events(times.back());
  } else if (staged) {
    seconds.copy = host_seconds([&] { stage(run, 0, compute_.get()); }, [&] { finish(); });
  }
  set_run(compute_.get(), run_counter(), 0);
  seconds.host = host_seconds(
      [&] {
        if (staged_on_stream) {
          stage(run, 0, compute_.get());
        }
        run_step(run, buffer);
      },
      [&] {
        finish();
        set_run(compute_.get(), run_counter(), 0);
        finish();
      });
  return seconds;
}

}  // namespace crossover::cuda
