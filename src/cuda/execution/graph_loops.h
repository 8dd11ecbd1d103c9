// SPDX-License-Identifier: Apache-2.0
// The order as one graph that repeats its steps in loops, each a WHILE node around the launches of
// one turn: CUDA C++ Programming Guide, "Conditional Graph Nodes".
#pragma once

#include "running.h"

namespace crossover::cuda {

/// The driver refuses a graph with loops after all, or loops around these launches: whoever plans
/// again does without.
struct LoopsRefused : Unsupported {
  using Unsupported::Unsupported;
};

/// Whether the versions of runtime and driver have loops in graphs.
bool has_graph_loops();

struct OrderedGraph {
  Graph loops;  ///< which the conditions of its loops belong to; null where there are none
  GraphExec exec;
};

/// Throws LoopsRefused, DeviceFailed, OutOfMemory.
OrderedGraph capture_loops(const Running& running);

}  // namespace crossover::cuda
