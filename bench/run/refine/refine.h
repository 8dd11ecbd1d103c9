// SPDX-License-Identifier: Apache-2.0
// Measures sizes between those of a sweep, in pairs, where the winner of two sides changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rows/row.h"
#include "run/refine/contest.h"

namespace crossover::bench {

/// How far a refinement goes, and what it takes for granted.
struct RefineLimits {
  double error = 0.05;             ///< probability that any sure winner is none
  std::size_t most_sizes = 32;     ///< that may be tried
  std::int64_t most_pairs = 100;   ///< of a size
  double seconds = 60;             ///< after which nothing more is tried
  double min_time_seconds = 0.01;  ///< of one repetition; less where the sweep's is less

  /// Of one size, so that `error` holds for all of them (Bonferroni).
  [[nodiscard]] double error_of_size() const { return error / static_cast<double>(most_sizes); }
};

/// How rows are measured: as a Sampler does.
struct RefineRows {
  std::function<std::optional<double>(const std::string& name)> repeat;
  std::function<void(const std::string& name)> finish;
  std::function<void()> renew;  ///< what comes next is made anew, in another process
  SecondsOf seconds;
  /// Adds all rows of this size of a ladder, or of commands or functions: those that stand there
  /// stay.
  std::function<void(const std::string& size)> bring;
  Ladders ladders;
  /// Adds the other program's rows that do the work of this one; where it has none the refinement
  /// ends, as it does where bring() adds none.
  std::function<void(const std::string& name)> join = {};
  /// Networks on ladders, or sizes of commands, that an earlier run has measured, for their rungs;
  /// may be empty.
  std::vector<std::string> models = {};
};

/// Called with what is known so far, as the result file has it (`refinements`, results/README.md),
/// before the rows of a size are finished, and in the end; not where there was no time for any
/// size.
using RefineRecord = std::function<void(const nlohmann::ordered_json& refinements)>;

/// Whether the row, by its name, is an epoch of a network on a ladder, a command, or a function.
bool is_on_a_ladder(const std::string& row, const Ladders& ladders);

/// Brings the rows of the sizes that it tries, and tells of each in a line. `kind` is not `off`.
/// Several problems of functions share the time: each has an equal part of what is left.
/// Says why where nothing can be refined and `kind` is not automatic.
void refine(Refine kind, Rows& rows, const RefineRows& measured, const RefineLimits& limits,
            const RefineRecord& record);

}  // namespace crossover::bench
