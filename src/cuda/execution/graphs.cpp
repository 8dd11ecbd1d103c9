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
    const bool sums = !launches_of<SumLaunch>(running.plan).empty();
    const bool convolutions = !launches_of<ConvolutionLaunch>(running.plan).empty();
    if (!sums && !convolutions && launches_of<SdpaLaunch>(running.plan).empty()) {
      throw;
    }
    throw Unsupported(std::string(sums           ? "NCCL's sums"
                                  : convolutions ? "cuDNN's convolutions"
                                                 : "cuDNN's attention") +
                      " can't be captured into a CUDA graph: " + error.what());
  }
}

/// A step that reads from a staging buffer, behind what fills that where a kernel does.
void issue_with_rows(const Running& running, int step, int buffer) {
  if (running.plan.mode.gathers()) {
    running.gather(step);
  }
  running.issue(step, {.buffer = buffer});
}

OrderedGraph graph_of_order(const Running& running) {
  if (!running.plan.loops.empty()) {
    return capture_loops(running);
  }
  return {.loops = {}, .exec = captured(running, [&] {
                         for (const Run& run : running.workload.order) {
                           running.issue(run.step, {.first_row = run.first_row});
                         }
                       })};
}

}  // namespace

StepGraphs::StepGraphs(const Running& running) : StepByStep(running) {
  const int steps = static_cast<int>(running.steps.size());
  // Code is loaded at its first call, which a capture does not allow everywhere: so each step runs
  // once before, on zeros, and leaves zeros behind. NCCL's was when the ranks met.
  for (int step = 0; step < steps; ++step) {
    if (launches_of<SumLaunch>(running.plan).empty()) {
      issue_with_rows(running, step, 0);
    } else {
      if (running.plan.mode.gathers()) {
        running.gather(step);
      }
      running.issue_alone(step, {.buffer = 0});
    }
    running.wait();
    running.tensors.clear(running.stream());
  }
  if (running.plan.mode.gathers()) {
    running.upload_order();
  }
  for (int step = 0; step < steps; ++step) {
    std::vector<GraphExec>& graphs = graphs_.emplace_back();
    for (int buffer = 0; buffer < running.plan.mode.buffers; ++buffer) {
      graphs.push_back(captured(running, [&] { issue_with_rows(running, step, buffer); }));
    }
  }
}

void StepGraphs::issue(std::int64_t run, const Position& position) const {
  const auto step = static_cast<std::size_t>(running().run(run).step);
  const GraphExec& graph = graphs_[step][static_cast<std::size_t>(position.buffer)];
  CROSSOVER_CUDA_CHECK(cudaGraphLaunch(graph.get(), running().stream()));
}

OrderGraph::OrderGraph(const Running& running)
    : running_(running), parts_(running), order_(graph_of_order(running)) {}

void OrderGraph::enqueue(std::int64_t first, std::int64_t count) {
  if (first == 0 && count == running_.runs()) {
    running_.start_at(0);  // where it ends, too
    CROSSOVER_CUDA_CHECK(cudaGraphLaunch(order_.exec.get(), running_.stream()));
  } else {
    parts_.enqueue(first, count);
  }
}

void check_order_graph(const Workload& workload, const LaunchPlan& plan) {
  if (plan.mode.execution != Execution::graph_epoch) {
    return;
  }
  constexpr std::int64_t most_nodes = 500'000;  // about a gigabyte, and minutes to instantiate
  const std::int64_t nodes = count_graph_nodes(workload, plan);
  if (nodes > most_nodes) {
    throw Unsupported("the whole order as one graph would have " + std::to_string(nodes) +
                      " nodes, more than " + std::to_string(most_nodes) +
                      (plan.loops.empty()
                           ? ": it has no loops, which need CUDA 12.4 and steps that repeat"
                           : ": few of its steps repeat"));
  }
}

}  // namespace crossover::cuda
