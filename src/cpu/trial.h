// SPDX-License-Identifier: Apache-2.0
// Two Programs of the same Workload, timed in turn.
#pragma once

#include <cstdint>
#include <functional>

#include "crossover/backend.h"

namespace crossover::cpu {

/// Seconds since some moment.
using Stopwatch = std::function<double()>;

/// The machine's own, which goes on however it is set.
double steady_seconds();

/// Seconds of the first position of the order, about: the second time, as the first touches memory
/// and wakes threads, unless it takes too long for that to matter.
double seconds_of_one(Program& program, const Stopwatch& now);

/// What seconds_of_one() found of a Program.
struct Contender {
  Program& program;
  double seconds;
};

/// The seconds of the second over those of the first, for the first of `runs` positions of the
/// order, or for as many as are worth timing at once. Both start with what they hold, and hold
/// anything afterwards. Takes a fifth of a second of each at most, or one position; nothing where
/// long positions differ by much.
double ratio_of_seconds(const Contender& first, const Contender& second, std::int64_t runs,
                        const Stopwatch& now);

}  // namespace crossover::cpu
