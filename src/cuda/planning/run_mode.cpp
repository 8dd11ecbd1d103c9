// SPDX-License-Identifier: Apache-2.0
#include "run_mode.h"

#include <algorithm>

namespace crossover::cuda {

namespace {

/// Throws Unsupported where no GPU runs so.
void require_of_gpu(Execution execution) {
  const auto all = {Execution::eager, Execution::overlapped, Execution::graph,
                    Execution::graph_epoch, Execution::persistent};
  if (std::find(all.begin(), all.end(), execution) == all.end()) {
    throw Unsupported(
        "winograd and fused are the CPU's; a GPU has eager, graph, graph-epoch, persistent and "
        "auto, the fastest of these");
  }
}

}  // namespace

RunMode choose_run_mode(const CompileOptions& options) {
  require_of_gpu(options.execution);
  RunMode mode{
      .execution = options.execution,
      .placement = options.placement,
      .loss_every_step = options.loss_every_step,
      .activations = options.keep_activations ? Activations::kept : Activations::share_memory};
  mode.overlaps_sums = options.ranks != nullptr && mode.execution != Execution::eager;
  if (mode.execution == Execution::overlapped) {
    mode.execution = Execution::eager;
  }
  if (mode.execution == Execution::graph_epoch && (!mode.is_resident() || mode.loss_every_step)) {
    mode.execution = Execution::graph;  // see Execution
  }
  // A step's graph reads at fixed addresses, the graph of a whole order at each run's own, unless
  // it repeats the graphs of steps: make_plan() decides that.
  mode.in_place = mode.is_resident() && mode.execution != Execution::graph;
  if (mode.is_graph()) {
    mode.streams = options.graph_form.value_or(GraphForm{}).streams;
  }
  if (mode.placement == Placement::pinned_async) {
    mode.buffers = 2;
  } else if (!mode.is_resident() || mode.is_graph()) {
    mode.buffers = 1;
  }
  return mode;
}

}  // namespace crossover::cuda
