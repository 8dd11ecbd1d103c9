// SPDX-License-Identifier: Apache-2.0
// Captures that become graphs, and their launches.
#include <algorithm>

#include "graph_loops.h"
#include "streams.h"

namespace cuda_host {
namespace {

struct Graphs {
  Registry<CUgraph_st> graphs;
  Registry<CUgraphExec_st> execs;
};

Graphs& all_graphs() {
  static Graphs only;
  return only;
}

/// Whether every operation of the capture is one that the origin's next one would wait for.
bool is_joined(const Capture& capture, const CUstream_st& origin) {
  std::vector<bool> reached(capture.graph.entries.size());
  std::vector<std::size_t> stack = origin.tails;
  while (!stack.empty()) {
    const std::size_t at = stack.back();
    stack.pop_back();
    if (!reached[at]) {
      reached[at] = true;
      const auto& after = capture.graph.entries[at].after;
      stack.insert(stack.end(), after.begin(), after.end());
    }
  }
  return std::all_of(reached.begin(), reached.end(), [](bool is) { return is; });
}

void leave_capture(const std::shared_ptr<Capture>& capture) {
  for (CUstream_st* stream : capture->streams) {
    stream->capture = nullptr;
    stream->tails.clear();
  }
  capture->streams.clear();
}

/// Its operations become operations of the stream's own capture.
void record_launch(const CUgraph_st& graph, CUstream_st& stream) {
  auto& entries = stream.capture->graph.entries;
  const auto border = [&](std::vector<std::size_t> after) {
    entries.push_back({std::make_shared<Work>(Work{.what = "graph", .run = {}, .blocks = {}}),
                       std::move(after), nullptr});
    return entries.size() - 1;
  };
  const std::size_t first = border(stream.tails);
  std::vector<std::size_t> every{first};
  for (const CUgraph_st::Entry& entry : graph.entries) {
    std::vector<std::size_t> after{first};
    for (const std::size_t before : entry.after) {
      after.push_back(first + 1 + before);
    }
    every.push_back(entries.size());
    entries.push_back({entry.work, std::move(after), nullptr});
  }
  stream.tails = {border(std::move(every))};
}

cudaError_t begin_capture(cudaStream_t handle, cudaGraph_t into) {
  CUstream_st* stream = find_stream(handle);
  if (handle == nullptr || stream == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (stream->capture) {
    return cudaErrorIllegalState;
  }
  stream->capture = std::make_shared<Capture>();
  stream->capture->into = into;
  stream->capture->origin = handle;
  stream->capture->streams = {handle};
  stream->tails.clear();
  return cudaSuccess;
}

void launch_now(CUgraphExec_st& exec, CUstream_st& stream) {
  const auto border = std::make_shared<Work>(Work{.what = "graph", .run = {}, .blocks = {}});
  auto begin = border;
  if (has_loops(exec.graph)) {
    begin = std::make_shared<Work>(*border);
    begin->run = [graph = exec.graph] { assign_conditions(graph); };
  }
  const Pending first = submit(begin, {stream.last, exec.last}, stream.number);
  std::vector<Pending> every{first};
  std::vector<Pending> nodes;
  for (const CUgraph_st::Entry& entry : exec.graph.entries) {
    std::vector<Pending> after{first};
    for (const std::size_t before : entry.after) {
      after.push_back(nodes[before]);
    }
    nodes.push_back(submit(entry.work, after, stream.number));
    every.push_back(nodes.back());
  }
  stream.last = exec.last = submit(border, every, stream.number);
}

}  // namespace

CUgraph_st* find_graph(cudaGraph_t handle) {
  return all_graphs().graphs.has(handle) ? handle : find_body(handle);
}

void forget_graphs();
void forget_graphs() {
  all_graphs() = Graphs{};
  forget_loops();
}

}  // namespace cuda_host

using namespace cuda_host;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode /*mode*/) {
  return call("cudaStreamBeginCapture", [&] { return begin_capture(handle, nullptr); });
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t handle, cudaGraph_t graph,
                                          const cudaGraphNode_t* /*dependencies*/,
                                          const cudaGraphEdgeData* /*dependency_data*/,
                                          std::size_t dependency_count,
                                          cudaStreamCaptureMode /*mode*/) {
  return call("cudaStreamBeginCaptureToGraph", [&] {
    const CUgraph_st* into = find_graph(graph);
    if (into == nullptr) {
      return cudaErrorInvalidValue;
    }
    if (dependency_count > 0 || !into->entries.empty()) {
      return cudaErrorNotSupported;  // by the emulation
    }
    return begin_capture(handle, graph);
  });
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  *graph = nullptr;
  return call("cudaGraphCreate", [&] {
    if (flags != 0) {
      return cudaErrorInvalidValue;
    }
    *graph = all_graphs().graphs.make(&Live::graphs);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  // Whatever else is wrong: the capture ends, so that its streams can be used again.
  const cudaError_t error = enter("cudaStreamEndCapture");
  *graph = nullptr;
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr || !stream->capture) {
    const cudaError_t own =
        stream == nullptr ? cudaErrorInvalidResourceHandle : cudaErrorIllegalState;
    return result(error != cudaSuccess ? error : own);
  }
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != handle) {
    return result(error != cudaSuccess ? error
                                       : invalidate(*stream, cudaErrorStreamCaptureUnmatched));
  }
  const bool joined = is_joined(*capture, *stream);
  leave_capture(capture);
  if (error != cudaSuccess) {
    return result(error);
  }
  if (!capture->valid) {
    return result(cudaErrorStreamCaptureInvalidated);
  }
  capture->valid = false;  // its events are of no more use
  if (!joined) {
    return result(cudaErrorStreamCaptureUnjoined);
  }
  *graph = capture->into != nullptr ? capture->into : all_graphs().graphs.make(&Live::graphs);
  **graph = capture->graph;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  return call("cudaGraphInstantiate", [&] {
    *exec = nullptr;
    if (!all_graphs().graphs.has(graph) || !graph->ready.expired()) {
      return cudaErrorInvalidValue;
    }
    if (const cudaError_t error = check_loops(graph, *graph)) {
      return error;
    }
    *exec = all_graphs().execs.make(&Live::graph_execs);
    (*exec)->graph = *graph;
    if (has_loops(*graph)) {
      make_loops_ready((*exec)->graph);
      (*exec)->only = std::make_shared<int>();
      graph->ready = (*exec)->only;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return call("cudaGraphUpload", [&] {
    if (!all_graphs().execs.has(exec) || find_stream(stream) == nullptr) {
      return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  return call("cudaGraphLaunch", [&] {
    CUstream_st* stream = find_stream(handle);
    if (!all_graphs().execs.has(exec) || stream == nullptr) {
      return cudaErrorInvalidValue;
    }
    if (!stream->capture) {
      launch_now(*exec, *stream);
      return cudaSuccess;
    }
    if (!stream->capture->valid) {
      return cudaErrorStreamCaptureInvalidated;
    }
    if (has_loops(exec->graph)) {
      return cudaErrorNotSupported;  // it can't be a child
    }
    record_launch(exec->graph, *stream);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const cudaError_t error = enter("cudaGraphDestroy");
  const bool found = all_graphs().graphs.destroy(graph, &Live::graphs);
  return result(error != cudaSuccess || found ? error : cudaErrorInvalidValue);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const cudaError_t error = enter("cudaGraphExecDestroy");
  const bool found = all_graphs().execs.destroy(exec, &Live::graph_execs);
  return result(error != cudaSuccess || found ? error : cudaErrorInvalidValue);
}
