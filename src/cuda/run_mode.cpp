// SPDX-License-Identifier: Apache-2.0
#include "run_mode.h"

namespace crossover::cuda {

RunMode choose_run_mode(const CompileOptions& options) {
  RunMode mode{
      .execution = options.execution,
      .placement = options.placement,
      .loss_every_step = options.loss_every_step,
      .activations = options.keep_activations ? Activations::kept : Activations::share_memory};
  if (mode.execution == Execution::graph_epoch && (!mode.is_resident() || mode.loss_every_step)) {
    mode.execution = Execution::graph;  // see Execution
  }
  // A step's graph reads at fixed addresses, the graph of a whole order at each run's own.
  mode.in_place = mode.is_resident() && mode.execution != Execution::graph;
  if (mode.placement == Placement::pinned_async) {
    mode.buffers = 2;
  } else if (!mode.is_resident() || mode.execution != Execution::eager) {
    mode.buffers = 1;
  }
  return mode;
}

}  // namespace crossover::cuda
