// SPDX-License-Identifier: Apache-2.0
// Conditional nodes of graphs: WHILE nodes alone, which is what src/cuda makes.
#pragma once

#include <memory>

#include "streams.h"

namespace cuda_host {

struct Condition {
  cudaGraph_t graph = nullptr;  ///< that it was made for
  unsigned initial = 0;
  bool assigns = false;  ///< `initial` at each launch
  bool used = false;     ///< by a node
  unsigned value = 0;
  int sets = 0;  ///< by the kernel that runs
};

struct Loop {
  std::shared_ptr<Condition> condition;
  std::shared_ptr<CUgraph_st> body;
  cudaGraph_t handle = nullptr;  ///< of the body: what phGraph_out points to
};

/// The body behind a handle; null where there is none.
CUgraph_st* find_body(cudaGraph_t handle);

bool has_loops(const CUgraph_st& graph);

/// What keeps the graph from being made ready: nodes that no body may have, a condition without a
/// node, a driver that has no loops. The manual does not say which error that gives.
cudaError_t check_loops(cudaGraph_t handle, const CUgraph_st& graph);

/// Gives the loops of a graph that is made ready their work.
void make_loops_ready(CUgraph_st& graph);

/// At a launch.
void assign_conditions(const CUgraph_st& graph);

void forget_loops();

}  // namespace cuda_host
