// SPDX-License-Identifier: Apache-2.0
// What a run is told of how it measures, whatever its rows are.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/times.h"

namespace crossover::bench {

/// Which two sides are told apart more closely after a sweep (refine/contest.h); automatic: where a
/// whole sweep is measured those that it is about.
enum class Refine { automatic, off, threads, device, execution, program, command, function };
inline constexpr std::array named_contests{
    std::pair{"auto", Refine::automatic},      std::pair{"off", Refine::off},
    std::pair{"threads", Refine::threads},     std::pair{"device", Refine::device},
    std::pair{"execution", Refine::execution}, std::pair{"program", Refine::program},
    std::pair{"command", Refine::command},     std::pair{"function", Refine::function}};
/// Those that bench has rows of: functions are of crossover::two.
inline constexpr std::span contests_of_bench{named_contests.begin(), named_contests.size() - 1};

struct RunOptions {
  Effort effort;                   ///< of rows that have none of their own
  std::optional<int> repetitions;  ///< that someone asks for; none: as many as a row needs
  /// Over the same rows, each by new processes: as many instances of a row, at most.
  int most_passes = 15;
  std::optional<double> budget_seconds;
  bool by_worth = false;           ///< rows that are worth most come first (families/order.h)
  std::optional<std::string> out;  ///< the result file
  bool resume = false;             ///< go on with the run whose rows are in it
  /// Of the run's time, for other programs; none: what they need.
  std::optional<double> peers_share;
  bool in_process = false;       ///< measure without a child
  bool shuffles = false;         ///< work comes in random order
  std::string when_answered;     ///< a command to run once what answers is measured; empty: none
  bool energy = false;           ///< read the meters around repetitions that are long enough
  std::string meter;             ///< a command that tells the joules so far; empty: the machine's
  double patience_seconds = 30;  ///< with a row that makes no progress (run/sampler.h)
  Refine refine = Refine::automatic;
  bool looks_between_sizes = false;  ///< Refine::automatic does
};

}  // namespace crossover::bench
