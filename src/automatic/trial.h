// SPDX-License-Identifier: Apache-2.0
// Two Programs of the same Workload, timed in turn.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "crossover/backend.h"

namespace crossover {

/// Seconds since some moment.
using Stopwatch = std::function<double()>;

/// The machine's own, which goes on however it is set.
double steady_seconds();

/// Gives a Program its initial parameters, and data like that of generated rows: uniform, labels
/// and tokens over all that there are. Equal ones would take another time, in the gradient of an
/// embedding many times as long.
void begin_trial(Program& program, const Workload& workload);

/// How Programs are tried.
struct Trials {
  std::int64_t runs = 1;   ///< positions of the order
  std::int64_t least = 1;  ///< of them those that are enqueued at once, at least: divides `runs`
  /// After which no further way is tried, once there is one.
  double most_seconds = std::numeric_limits<double>::infinity();
  /// What a Program trains on, which has none when it is made.
  std::function<void(Program&)> begin = [](Program& /*on_zeros*/) {};
};

/// Seconds of the `least` first positions of the order, about: the second time, as the first
/// touches memory and wakes threads, unless it takes too long for that to matter.
double seconds_of_least(Program& program, const Trials& trials, const Stopwatch& now);

/// What seconds_of_least() found of a Program.
struct Contender {
  Program& program;
  double seconds;
};

/// The seconds of the second over those of the first, for the `least` first positions of the order,
/// or for as many as are worth timing at once. Both start with what they hold, and hold anything
/// afterwards. Takes a fifth of a second of each at most, or the `least` positions once; nothing
/// where long ones differ by much.
double ratio_of_seconds(const Contender& first, const Contender& second, const Trials& trials,
                        const Stopwatch& now);

}  // namespace crossover
