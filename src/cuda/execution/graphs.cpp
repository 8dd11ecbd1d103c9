// SPDX-License-Identifier: Apache-2.0
#include "graphs.h"

#include <functional>
#include <stdexcept>
#include <string>

namespace crossover::cuda {

namespace {

/// capture(), and a sentence where a library does what a capture forbids: eager execution is left.
GraphExec captured(const Running& running, const std::function<void()>& issue) {
  try {
    return capture(running.stream(), issue);
  } catch (const DeviceFailed&) {
    throw;
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::runtime_error& error) {
    if (launches_of<ConvolutionLaunch>(running.plan).empty()) {
      throw;
    }
    throw Unsupported(std::string("cuDNN's convolutions can't be captured into a CUDA graph: ") +
                      error.what());
  }
}

}  // namespace

StepGraphs::StepGraphs(const Running& running) : StepByStep(running) {
  const int steps = static_cast<int>(running.steps.size());
  // Code is loaded at its first call, which a capture does not allow everywhere: so each step runs
  // once before, on zeros, and leaves zeros behind.
  for (int step = 0; step < steps; ++step) {
    running.issue(step, {.buffer = 0});
    running.wait();
    running.tensors.clear(running.stream());
  }
  for (int step = 0; step < steps; ++step) {
    std::vector<GraphExec>& graphs = graphs_.emplace_back();
    for (int buffer = 0; buffer < running.plan.mode.buffers; ++buffer) {
      graphs.push_back(captured(running, [&] { running.issue(step, {.buffer = buffer}); }));
    }
  }
}

void StepGraphs::issue(std::int64_t run, const Position& position) const {
  const auto step = static_cast<std::size_t>(running().run(run).step);
  const GraphExec& graph = graphs_[step][static_cast<std::size_t>(position.buffer)];
  CROSSOVER_CUDA_CHECK(cudaGraphLaunch(graph.get(), running().stream()));
}

OrderGraph::OrderGraph(const Running& running)
    : running_(running), parts_(running), order_(captured(running, [&] {
        running.set_run(0);
        for (const Run& run : running.workload.order) {
          running.issue(run.step, {.first_row = run.first_row});
        }
      })) {}

void OrderGraph::enqueue(std::int64_t first, std::int64_t count) {
  if (first == 0 && count == running_.runs()) {
    CROSSOVER_CUDA_CHECK(cudaGraphLaunch(order_.get(), running_.stream()));
  } else {
    parts_.enqueue(first, count);
  }
}

void check_order_graph(const Workload& workload, const LaunchPlan& plan) {
  if (plan.mode.execution != Execution::graph_epoch) {
    return;
  }
  constexpr std::int64_t most_nodes = 500'000;  // about a gigabyte, and minutes to instantiate
  const std::int64_t nodes = 1 + count_launches(workload, plan);
  if (nodes > most_nodes) {
    throw Unsupported("the whole order as one graph would have " + std::to_string(nodes) +
                      " nodes, more than " + std::to_string(most_nodes));
  }
}

}  // namespace crossover::cuda
