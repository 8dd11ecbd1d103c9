// SPDX-License-Identifier: Apache-2.0
// The executions, and all that is to be known of each where one is offered, refused or put into an
// order. To add one: a name in backend.h, a line here, and what runs it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "crossover/backend.h"

namespace crossover {

struct ExecutionFacts {
  Execution execution;
  std::string_view name;  ///< in flags, names of rows and files
  bool on_cpu, on_gpu;
  bool on_ranks;        ///< several ranks run it
  bool on_ranks_alone;  ///< one process by itself has it not
  bool trains;          ///< only what trains: operations by themselves are not run so
  bool of_whole_order;  ///< runs the whole order by itself: nothing is copied or read between steps
  /// On a GPU, how much can go wrong: calls that libraries make for everyone, then what is our own,
  /// and what tries all of them.
  std::size_t risk;
};

inline constexpr std::size_t most_risk = 4;

/// In the order in which names are listed, the plainest first.
inline constexpr std::array execution_table{
    ExecutionFacts{Execution::eager, "eager", true, true, true, false, false, false, 0},
    ExecutionFacts{Execution::winograd, "winograd", true, false, false, false, true, false, 0},
    ExecutionFacts{Execution::fused, "fused", true, false, false, false, true, false, 0},
    ExecutionFacts{Execution::overlapped, "overlapped", true, true, true, true, true, false, 0},
    ExecutionFacts{Execution::automatic, "auto", true, true, false, false, true, false, most_risk},
    ExecutionFacts{Execution::graph, "graph", false, true, true, false, false, false, 1},
    ExecutionFacts{Execution::graph_epoch, "graph-epoch", false, true, true, false, false, true, 2},
    ExecutionFacts{Execution::persistent, "persistent", false, true, false, false, true, true, 3},
};

constexpr const ExecutionFacts& facts_of(Execution execution) {
  return *std::find_if(execution_table.begin(), execution_table.end(),
                       [=](const ExecutionFacts& one) { return one.execution == execution; });
}

}  // namespace crossover
