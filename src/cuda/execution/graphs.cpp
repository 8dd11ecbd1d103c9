// SPDX-License-Identifier: Apache-2.0
#include "executor.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

namespace crossover::cuda {

// ---- Graph loops

#if CUDART_VERSION >= 12040

namespace {

/// Behind `after`, unless that is null.
cudaGraphNode_t add_node(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphNodeParams& node) {
  const std::size_t count = after == nullptr ? 0 : 1;
  cudaGraphNode_t added = nullptr;
#if CUDART_VERSION >= 13000
  CROSSOVER_CUDA_CHECK(cudaGraphAddNode(&added, graph, &after, nullptr, count, &node));
#else
  CROSSOVER_CUDA_CHECK(cudaGraphAddNode(&added, graph, &after, count, &node));
#endif
  return added;
}

/// Records what `issue` puts into the stream as the loop's body, which belongs to the loop.
void capture_body(cudaGraph_t body, cudaStream_t stream, const std::function<void()>& issue) {
  CROSSOVER_CUDA_CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                                     cudaStreamCaptureModeThreadLocal));
  cudaGraph_t recorded = nullptr;
  try {
    issue();
  } catch (...) {
    static_cast<void>(cudaStreamEndCapture(stream, &recorded));
    static_cast<void>(cudaGetLastError());
    throw;
  }
  CROSSOVER_CUDA_CHECK(cudaStreamEndCapture(stream, &recorded));
}

void issue_turn(const Running& running, const OrderLoop& loop, const LoopCondition& condition) {
  for (std::int64_t run = loop.first; run < loop.first + loop.cycle; ++run) {
    const int step = running.run(run).step;
    if (run == loop.first) {
      gather_in_loop(running.step_plan(step), running.binding, condition);
    } else {
      running.gather(step);
    }
    running.issue(step, {.buffer = 0});
  }
}

/// A loop behind `after`.
cudaGraphNode_t add_loop(cudaGraph_t graph, cudaGraphNode_t after, const Running& running,
                         const OrderLoop& loop) {
  cudaGraphConditionalHandle handle = 0;
  constexpr unsigned enters = 1;  // whenever the graph is launched
  CROSSOVER_CUDA_CHECK(
      cudaGraphConditionalHandleCreate(&handle, graph, enters, cudaGraphCondAssignDefault));
  cudaGraphNodeParams node{};
  node.type = cudaGraphNodeTypeConditional;
  node.conditional.handle = handle;
  node.conditional.type = cudaGraphCondTypeWhile;
  node.conditional.size = 1;
  cudaGraphNode_t added = add_node(graph, after, node);
  capture_body(node.conditional.phGraph_out[0], running.stream(), [&] {
    issue_turn(running, loop, {.handle = handle, .cycle = loop.cycle, .end = loop.end()});
  });
  return added;
}

}  // namespace

bool has_graph_loops() {
  constexpr int first_version = 12040;
  int driver = 0;
  int runtime = 0;
  CROSSOVER_CUDA_CHECK(cudaDriverGetVersion(&driver));
  CROSSOVER_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  return std::min(driver, runtime) >= first_version;
}

OrderedGraph capture_loops(const Running& running) {
  try {
    prepare_gather_in_loop();
    cudaGraph_t empty = nullptr;
    CROSSOVER_CUDA_CHECK(cudaGraphCreate(&empty, 0));
    OrderedGraph made{.loops = Graph(empty), .exec = {}};
    cudaGraphNode_t last = nullptr;
    for (const OrderLoop& loop : running.plan.loops) {
      last = add_loop(made.loops.get(), last, running, loop);
    }
    made.exec = instantiate(made.loops.get(), running.stream());
    return made;
  } catch (const DeviceFailed&) {
    throw;
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw LoopsRefused(std::string("the order can't be a graph with loops: ") + error.what());
  }
}

#else

bool has_graph_loops() { return false; }

OrderedGraph capture_loops(const Running& /*running*/) {
  throw LoopsRefused("CUDA before 12.4 has no graphs with loops");
}

#endif

// ---- Graphs

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
