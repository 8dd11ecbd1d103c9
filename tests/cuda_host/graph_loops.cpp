// SPDX-License-Identifier: Apache-2.0
// Loops in graphs, by the manual's rules: cudaGraphConditionalHandleCreate(), cudaGraphAddNode(),
// cudaConditionalNodeParams, cudaGraphSetConditional().
#include "graph_loops.h"

#include <algorithm>
#include <map>

namespace cuda_host {
namespace {

constexpr int first_version = 12040;

struct Loops {
  std::map<cudaGraphConditionalHandle, std::shared_ptr<Condition>> conditions;
  std::map<cudaGraph_t, std::weak_ptr<CUgraph_st>> bodies;
  cudaGraphConditionalHandle made = 0;
};

Loops& all_loops() {
  static Loops only;
  return only;
}

/// Once, in an order that the edges leave open.
void run_body(const CUgraph_st& body, Condition& condition) {
  std::vector<bool> done(body.entries.size());
  std::vector<std::size_t> left(body.entries.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    left[i] = i;
  }
  while (!left.empty() && state().sticky == cudaSuccess) {
    std::vector<std::size_t> ready;
    std::copy_if(left.begin(), left.end(), std::back_inserter(ready), [&](std::size_t entry) {
      const auto& after = body.entries[entry].after;
      return std::all_of(after.begin(), after.end(), [&](std::size_t at) { return done[at]; });
    });
    const std::size_t entry = ready[state().pick(ready.size())];
    condition.sets = 0;
    carry_out_within(*body.entries[entry].work);
    done[entry] = true;
    left.erase(std::find(left.begin(), left.end(), entry));
  }
}

void run_loop(const Loop& loop) {
  constexpr std::int64_t most_turns = 10'000;
  if (is_due(Fault::endless_loop)) {
    hang();
  }
  for (std::int64_t turn = 0; loop.condition->value != 0; ++turn) {
    if (turn == most_turns) {
      violation("a loop in a graph does not end");
      fail_context(cudaErrorLaunchTimeout);
    }
    if (state().sticky != cudaSuccess) {
      return;
    }
    run_body(*loop.body, *loop.condition);
  }
}

void add_blocks(const CUgraph_st& body, std::vector<const void*>& blocks) {
  for (const CUgraph_st::Entry& entry : body.entries) {
    blocks.insert(blocks.end(), entry.work->blocks.begin(), entry.work->blocks.end());
  }
}

bool may_be_body(const CUgraph_st& graph) {
  return std::all_of(graph.entries.begin(), graph.entries.end(), [](const auto& entry) {
    return entry.loop ? may_be_body(*entry.loop->body) : entry.work->loops;
  });
}

}  // namespace

CUgraph_st* find_body(cudaGraph_t handle) {
  const auto found = all_loops().bodies.find(handle);
  return found == all_loops().bodies.end() ? nullptr : found->second.lock().get();
}

bool has_loops(const CUgraph_st& graph) {
  return std::any_of(graph.entries.begin(), graph.entries.end(),
                     [](const auto& entry) { return entry.loop != nullptr; });
}

cudaError_t check_loops(cudaGraph_t handle, const CUgraph_st& graph) {
  if (!has_loops(graph)) {
    return cudaSuccess;
  }
  if (state().device.refuses_loops) {
    return cudaErrorNotSupported;
  }
  const auto& conditions = all_loops().conditions;
  if (std::any_of(conditions.begin(), conditions.end(), [&](const auto& made) {
        return made.second->graph == handle && !made.second->used;
      })) {
    return cudaErrorInvalidValue;
  }
  const bool allowed =
      std::all_of(graph.entries.begin(), graph.entries.end(),
                  [](const auto& entry) { return !entry.loop || may_be_body(*entry.loop->body); });
  return allowed ? cudaSuccess : cudaErrorNotSupported;
}

void make_loops_ready(CUgraph_st& graph) {
  for (CUgraph_st::Entry& entry : graph.entries) {
    if (entry.loop) {
      make_loops_ready(*entry.loop->body);
      Work work{.what = "loop", .run = [loop = entry.loop] { run_loop(*loop); }, .blocks = {}};
      add_blocks(*entry.loop->body, work.blocks);
      entry.work = std::make_shared<Work>(std::move(work));
    }
  }
}

void assign_conditions(const CUgraph_st& graph) {
  for (const CUgraph_st::Entry& entry : graph.entries) {
    if (entry.loop) {
      Condition& condition = *entry.loop->condition;
      condition.value = condition.assigns ? condition.initial : condition.value;
      condition.sets = 0;
      assign_conditions(*entry.loop->body);
    }
  }
}

void forget_loops() { all_loops() = Loops{}; }

}  // namespace cuda_host

using namespace cuda_host;

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned default_launch_value, unsigned flags) {
  *handle = 0;
  return call("cudaGraphConditionalHandleCreate", [&] {
    if (state().device.driver_version < first_version) {
      return cudaErrorCallRequiresNewerDriver;
    }
    if (find_graph(graph) == nullptr || flags > cudaGraphCondAssignDefault) {
      return cudaErrorInvalidValue;
    }
    *handle = ++all_loops().made;
    all_loops().conditions[*handle] =
        std::make_shared<Condition>(Condition{.graph = graph,
                                              .initial = default_launch_value,
                                              .assigns = flags == cudaGraphCondAssignDefault});
    return cudaSuccess;
  });
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t handle,
                             const cudaGraphNode_t* dependencies,
                             const cudaGraphEdgeData* dependency_data, std::size_t dependency_count,
                             cudaGraphNodeParams* parameters) {
  *node = nullptr;
  return call("cudaGraphAddNode", [&] {
    CUgraph_st* graph = find_graph(handle);
    cudaConditionalNodeParams& conditional = parameters->conditional;
    if (parameters->type != cudaGraphNodeTypeConditional || dependency_data != nullptr) {
      return cudaErrorNotSupported;  // by the emulation
    }
    const auto made = all_loops().conditions.find(conditional.handle);
    if (graph == nullptr || conditional.type != cudaGraphCondTypeWhile || conditional.size != 1 ||
        made == all_loops().conditions.end() || made->second->used ||
        made->second->graph != handle) {
      return cudaErrorInvalidValue;
    }
    std::vector<std::size_t> after;
    for (std::size_t i = 0; i < dependency_count; ++i) {
      const auto known =
          std::find_if(graph->nodes.begin(), graph->nodes.end(),
                       [&](const auto& one) { return one.get() == dependencies[i]; });
      if (known == graph->nodes.end()) {
        return cudaErrorInvalidValue;
      }
      after.push_back((*known)->entry);
    }
    made->second->used = true;
    auto loop = std::make_shared<Loop>(
        Loop{.condition = made->second, .body = std::make_shared<CUgraph_st>()});
    loop->handle = loop->body.get();
    all_loops().bodies[loop->handle] = loop->body;
    conditional.phGraph_out = &loop->handle;
    graph->entries.push_back({nullptr, std::move(after), std::move(loop)});
    graph->nodes.push_back(
        std::make_shared<CUgraphNode_st>(CUgraphNode_st{graph->entries.size() - 1}));
    *node = graph->nodes.back().get();
    return cudaSuccess;
  });
}

void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) {
  const auto made = all_loops().conditions.find(handle);
  if (made == all_loops().conditions.end()) {
    violation("a kernel sets the condition " + std::to_string(handle) + ", which is none");
    fail_context(cudaErrorLaunchFailure);
    return;
  }
  Condition& condition = *made->second;
  if (++condition.sets > 1) {
    violation("several threads of a kernel set one condition");
  }
  condition.value = value;
}
