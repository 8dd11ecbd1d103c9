// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "executor.h"

namespace crossover::cuda {

// ---- The order as one graph that repeats its steps in loops, each a WHILE node around the
// launches of one turn: CUDA C++ Programming Guide, "Conditional Graph Nodes".

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

// ---- Steps as CUDA graphs: one for each step and staging buffer, or one for the whole order. With
// resident data a step's graph begins with the kernel that gathers its rows.

class StepGraphs : public StepByStep {
 public:
  explicit StepGraphs(const Running& running);
  void issue(std::int64_t run, const Position& position) const override;

 private:
  std::vector<std::vector<GraphExec>> graphs_;  ///< by step and staging buffer
};

class OrderGraph : public Executor {
 public:
  explicit OrderGraph(const Running& running);
  void enqueue(std::int64_t first, std::int64_t count) override;
  [[nodiscard]] bool issues_order_at_once() const override { return true; }
  void issue(std::int64_t run, const Position& position) const override {
    parts_.issue(run, position);
  }

 private:
  const Running& running_;
  StepGraphs parts_;  ///< for a part of the order
  OrderedGraph order_;
};

/// Throws Unsupported where the graph of a whole order would be too large to make.
void check_order_graph(const Workload& workload, const LaunchPlan& plan);

}  // namespace crossover::cuda
