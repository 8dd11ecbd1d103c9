// SPDX-License-Identifier: Apache-2.0
#include "run_mode.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "crossover/executions.h"
#include "plan.h"

namespace crossover::cuda {

// ---- Run mode

namespace {

/// Throws Unsupported where no GPU runs so.
void require_of_gpu(Execution execution) {
  if (const ExecutionFacts& facts = facts_of(execution); !facts.on_gpu) {
    throw Unsupported(std::string(facts.name) + " is the CPU's; a GPU has " +
                      names_of_executions(&ExecutionFacts::on_gpu));
  }
  if (execution == Execution::automatic) {
    throw Unsupported("auto is several executions, each with a mode of its own");
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

// ---- Order loops

namespace {

/// How many runs from `first` on, in whole turns, repeat the first `cycle` of them.
std::int64_t times_of(const std::vector<Run>& order, std::int64_t first, std::int64_t cycle) {
  const auto begin = order.begin() + first;
  const auto differing = std::mismatch(begin + cycle, order.end(), begin,
                                       [](const Run& a, const Run& b) { return a.step == b.step; });
  return std::distance(begin, differing.first) / cycle;
}

/// Of the loops that begin with a run, the one that goes the farthest, of such the shortest cycle.
OrderLoop loop_from(const std::vector<Run>& order, std::int64_t first) {
  constexpr std::int64_t longest_cycle = 64;
  OrderLoop best{.first = first};
  const std::int64_t runs_left = std::ssize(order) - first;
  for (std::int64_t cycle = 1; cycle <= std::min(longest_cycle, runs_left / 2); ++cycle) {
    const OrderLoop loop{.first = first, .cycle = cycle, .times = times_of(order, first, cycle)};
    if (loop.times > 1 && loop.end() > best.end()) {
      best = loop;
    }
    if (best.end() == std::ssize(order)) {
      break;
    }
  }
  return best;
}

}  // namespace

std::vector<OrderLoop> find_loops(const std::vector<Run>& order) {
  std::vector<OrderLoop> loops;
  for (std::int64_t run = 0; run < std::ssize(order);) {
    const OrderLoop loop = loop_from(order, run);
    run = loop.end();
    if (loop.times == 1 && !loops.empty() && loops.back().times == 1) {
      ++loops.back().cycle;
    } else {
      loops.push_back(loop);
    }
  }
  return loops;
}

// ---- Graph forms

std::vector<GraphForm> graph_forms(const Workload& workload, const LaunchPlan& largest) {
  constexpr std::int64_t most_nodes = 20'000;  // a larger graph takes seconds to instantiate
  const bool may_loop = !largest.loops.empty();
  const bool may_unroll = !may_loop || count_launches(workload, largest) <= most_nodes;
  std::vector<GraphForm> forms;
  for (const bool loops : {false, true}) {
    if (loops ? !may_loop : !may_unroll) {
      continue;
    }
    forms.push_back({.loops = loops, .streams = 1});
    if (largest.forks()) {
      forms.push_back({.loops = loops, .streams = 2});
    }
  }
  return forms;
}

GraphForm fastest_of(const std::vector<GraphForm>& forms,
                     const std::function<bool(const GraphForm&)>& beats) {
  GraphForm best = forms.front();
  if (forms.size() == 1) {
    return best;
  }
  for (const GraphForm& form : forms) {
    try {
      if (beats(form)) {
        best = form;
      }
    } catch (const OutOfMemory&) {
    } catch (const Unsupported&) {
    }
  }
  return best;
}

}  // namespace crossover::cuda
