// SPDX-License-Identifier: Apache-2.0
// The executions, and all that is to be known of each where one is offered, refused or put into an
// order. To add one: a name in backend.h, a line here, and what runs it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "crossover/backend.h"

namespace crossover {

struct ExecutionFacts {
  Execution execution;
  std::string_view name;  ///< in flags, names of rows and files
  bool on_cpu = false, on_gpu = false;
  bool on_ranks = false;        ///< several ranks run it
  bool on_ranks_alone = false;  ///< one process by itself has it not
  bool trains = false;          ///< only what trains: operations by themselves are not run so
  bool of_whole_order = false;  ///< runs the whole order by itself: no loss is read between its
                                ///< steps, and batches are copied for in_one_kernel alone
  bool in_one_kernel = false;   ///< of a GPU, which few networks have; data may come from the host
  /// On a GPU, how much can go wrong: calls that libraries make for everyone, then what is our own,
  /// and what tries all of them.
  std::size_t risk = 0;
};

inline constexpr std::size_t most_risk = 5;

/// In the order in which names are listed, the plainest first.
inline constexpr std::array execution_table{
    ExecutionFacts{.execution = Execution::eager,
                   .name = "eager",
                   .on_cpu = true,
                   .on_gpu = true,
                   .on_ranks = true},
    ExecutionFacts{
        .execution = Execution::winograd, .name = "winograd", .on_cpu = true, .trains = true},
    ExecutionFacts{.execution = Execution::fused, .name = "fused", .on_cpu = true, .trains = true},
    ExecutionFacts{.execution = Execution::overlapped,
                   .name = "overlapped",
                   .on_cpu = true,
                   .on_gpu = true,
                   .on_ranks = true,
                   .on_ranks_alone = true,
                   .trains = true},
    ExecutionFacts{.execution = Execution::automatic,
                   .name = "auto",
                   .on_cpu = true,
                   .on_gpu = true,
                   .trains = true,
                   .risk = most_risk},
    ExecutionFacts{.execution = Execution::graph,
                   .name = "graph",
                   .on_gpu = true,
                   .on_ranks = true,
                   .risk = 1},
    ExecutionFacts{.execution = Execution::graph_epoch,
                   .name = "graph-epoch",
                   .on_gpu = true,
                   .on_ranks = true,
                   .of_whole_order = true,
                   .risk = 2},
    ExecutionFacts{.execution = Execution::persistent,
                   .name = "persistent",
                   .on_gpu = true,
                   .trains = true,
                   .of_whole_order = true,
                   .in_one_kernel = true,
                   .risk = 3},
    ExecutionFacts{.execution = Execution::tailored,
                   .name = "tailored",
                   .on_gpu = true,
                   .trains = true,
                   .of_whole_order = true,
                   .in_one_kernel = true,
                   .risk = 4},
};

constexpr const ExecutionFacts& facts_of(Execution execution) {
  return *std::find_if(execution_table.begin(), execution_table.end(),
                       [=](const ExecutionFacts& one) { return one.execution == execution; });
}

/// "eager, winograd, fused and auto": what one process has on a device (`on`), or several ranks.
inline std::string names_of_executions(bool ExecutionFacts::*on, bool on_ranks = false) {
  std::string names;
  std::string_view last;
  for (const ExecutionFacts& one : execution_table) {
    if (one.*on && (on_ranks ? one.on_ranks : !one.on_ranks_alone)) {
      if (!last.empty()) {
        names += (names.empty() ? "" : ", ") + std::string(last);
      }
      last = one.name;
    }
  }
  return names.empty() ? std::string(last) : names + " and " + std::string(last);
}

}  // namespace crossover
