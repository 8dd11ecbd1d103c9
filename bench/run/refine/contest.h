// SPDX-License-Identifier: Apache-2.0
// Which two sides a sweep leaves to be told apart, and what it says of them at the sizes that it
// has measured.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "axes/axes.h"
#include "crossover/ladder.h"
#include "rows/row.h"
#include "run/options.h"
#include "run/refine/search.h"

namespace crossover::bench {

/// The ladders that rows are on, as their families know them.
struct Ladders {
  /// The one that a network of that name is on, between its sizes too; empty: none.
  std::function<std::string(const std::string& model)> of;
  /// Its sizes, those in between too, smallest first.
  std::function<std::vector<LadderSize>(const std::string& ladder)> sizes;
};

/// Two ways to train the networks of a ladder, or two commands, or functions, over their sizes.
struct Contest {
  Refine kind = Refine::threads;
  std::vector<LadderSize> sizes;  ///< of the ladder, those in between too
  RowSpec work;                   ///< what both compute, without the network, or the size
  RowSpec first, second;          ///< how: device, execution, threads ...
  std::vector<Rung> ladder;       ///< places in `sizes`
  /// Of commands: few and many. What a side takes is the difference of its rows with these; where
  /// there are none, it is the time of its row.
  std::vector<std::int64_t> steps = {};

  /// Its sizes are no networks but numbers.
  [[nodiscard]] bool is_over_numbers() const {
    return kind == Refine::command || kind == Refine::function;
  }
  /// The names of its rows: of the side, at that place, one for each of `steps`.
  [[nodiscard]] std::vector<std::string> rows(const RowSpec& side, std::size_t place) const;
  /// "1 thread", "the CPU on 2 threads", "the GPU (graph, resident)", "std::sort".
  [[nodiscard]] std::string words(const RowSpec& side) const;
  /// Of functions, whose problems may be several: "sort, ".
  [[nodiscard]] std::string problem() const;
};

/// What a row runs, as far as its making has told: the row with what execution:auto came to, and
/// with the threads that have any work. Of rows that agree in it neither can win.
RowSpec program_of(const Row& row);

/// The seconds of a row's repetitions, as far as it has been measured.
using SecondsOf = std::function<std::vector<double>(const std::string& name)>;

/// Of the epochs of a ladder's networks in `rows` those to compare: of several ladders, batch
/// sizes, precisions and so on the one with the most sizes that both sides have, which are two at
/// least. None where there is none. Of functions one of each problem.
///   threads    the fewest CPU threads against the most that are not more than `cores`, of one
///              execution: of auto where that has as many sizes as the others
///   device     the CPU against the GPU's way that wins earliest, of those whose data lies on the
///              GPU where there are any, and of auto where it has as many sizes as these; on the
///              thread count that is fastest where it wins last
///   execution  a GPU's eager execution against one graph per step, in the same placement
///   program    bench against another program's rows of the same configuration, on the most CPU
///              threads that are not more than `cores`
///   command    the steps of two commands (docs/howto/two-programs.md) over their sizes
///   function   two functions (docs/howto/two-functions.md) over their sizes: the CPU's that wins
///              last against the GPU's that wins earliest; on one device the first two between
///              which the winner changes
///   automatic  device; without a GPU threads
std::vector<Contest> find_contests(Refine kind, Rows& rows, const SecondsOf& seconds, int cores,
                                   const Ladders& ladders);

}  // namespace crossover::bench
