// SPDX-License-Identifier: Apache-2.0
#include "graph_loops.h"

#include <algorithm>
#include <stdexcept>

namespace crossover::cuda {

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

}  // namespace crossover::cuda
