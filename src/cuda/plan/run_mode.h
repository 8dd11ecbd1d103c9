// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/backend.h"
#include "crossover/memory.h"
#include "crossover/step.h"

namespace crossover::cuda {

// ---- What CompileOptions ask of the GPU's run: how steps are issued and how their rows reach
// them. Decided here and nowhere else; planner, executors, profile and the count of launches read
// it.

struct RunMode {
  Execution execution = Execution::eager;  ///< graph_epoch only where the whole order is one graph
  Placement placement = Placement::resident;
  bool loss_every_step = false;
  Activations activations = Activations::share_memory;

  /// A pass over the whole order reads the rows where the data set lies on the device; where not,
  /// each step's rows come into a staging buffer first.
  bool in_place = true;

  /// In which a graph's launches are: with 2, some beside others.
  int streams = 1;

  /// Gradients are summed over ranks in a second stream, beside the backward pass.
  bool overlaps_sums = false;

  /// Staging buffers. Two: a stream of its own fills one while a step reads the other. Where a
  /// whole order reads in place, parts of it may still need one.
  int buffers = 0;

  [[nodiscard]] bool has_second_stream() const { return streams > 1 || overlaps_sums; }
  [[nodiscard]] bool is_resident() const { return placement == Placement::resident; }
  [[nodiscard]] bool is_graph() const {
    return execution == Execution::graph || execution == Execution::graph_epoch;
  }
  /// What fills the staging buffer: a kernel at the head of a step's graph, which finds out on the
  /// device whose turn it is. Else copies before each step.
  [[nodiscard]] bool gathers() const { return is_resident() && buffers > 0; }
};

/// Throws Unsupported for an execution that is not a GPU's, and for automatic, which runs as one of
/// the others.
RunMode choose_run_mode(const CompileOptions& options);

// ---- Parts of an order, and the order as loops over the steps that follow one another in it again
// and again.

/// Runs [first, end) of the order, whose rows come to the device together.
struct OrderPart {
  std::int64_t first = 0;
  std::int64_t end = 0;

  [[nodiscard]] bool is_empty() const { return first == end; }
};

/// `times` turns of `cycle` runs, each of which runs the same steps as the turn before.
struct OrderLoop {
  std::int64_t first = 0;  ///< run of the order
  std::int64_t cycle = 1;
  std::int64_t times = 1;

  [[nodiscard]] std::int64_t end() const { return first + cycle * times; }
};

/// Loops that cover the order one after another; where nothing repeats, with one turn. An epoch is
/// one loop and the short batch behind it; with gradients that are added up, a cycle is an update.
std::vector<OrderLoop> find_loops(const std::vector<Run>& order);

}  // namespace crossover::cuda
