// SPDX-License-Identifier: Apache-2.0
#include "executor.h"

#include "graphs.h"

namespace crossover::cuda {
namespace {

/// Launch by launch.
class Eager : public StepByStep {
 public:
  using StepByStep::StepByStep;
  void issue(std::int64_t run, const Position& position) const override {
    running().issue(running().run(run).step, position);
  }
};

}  // namespace

void StepByStep::enqueue(std::int64_t first, std::int64_t count) {
  const std::int64_t end = first + count;
  running_.start_at(first);
  feeder_->begin(first);
  for (std::int64_t run = first; run < end; ++run) {
    issue(run, feeder_->before(run));
    feeder_->after(run, run + 1 < end);
    if (running_.plan.mode.loss_every_step) {
      running_.losses.copy(running_.binding, run);
      running_.wait();
    }
  }
  running_.count_on(count);
}

std::unique_ptr<Executor> make_executor(const Running& running) {
  switch (running.plan.mode.execution) {
    case Execution::graph:
      return std::make_unique<StepGraphs>(running);
    case Execution::graph_epoch:
      return std::make_unique<OrderGraph>(running);
    case Execution::persistent:
      return make_persistent(running);
    default:
      return std::make_unique<Eager>(running);
  }
}

}  // namespace crossover::cuda
