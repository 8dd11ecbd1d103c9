// SPDX-License-Identifier: Apache-2.0
// Where the wall time of a run goes. Of the clock that no one sets.
#pragma once

#include <array>
#include <chrono>
#include <utility>

namespace crossover::bench {

using Instant = std::chrono::steady_clock::time_point;

inline double seconds_since(Instant start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// In seconds, since the process began.
struct Spent {
  Instant start = std::chrono::steady_clock::now();
  double timed = 0;         ///< repetitions that are kept
  double warm_up = 0;       ///< untimed iterations, and trials that settle how many there are
  double verification = 0;  ///< comparisons with a reference, and the reference
  double profile = 0;       ///< counters beside the times
  double making = 0;        ///< data, compilation, and the choice of how to run
  double lent = 0;          ///< to another program, which had its turns

  /// Of all, seconds in which nothing could run.
  void leave_out(double seconds) {
    start += std::chrono::duration_cast<Instant::duration>(std::chrono::duration<double>(seconds));
  }

  /// What a sweep is for.
  [[nodiscard]] double measuring() const { return timed + warm_up + verification; }
  [[nodiscard]] double all() const { return seconds_since(start); }
};

/// What a worker tells of each answer, and a result file of each part of a run.
inline constexpr std::array<std::pair<const char*, double Spent::*>, 5> parts_of_spent{
    {{"timed", &Spent::timed},
     {"warm_up", &Spent::warm_up},
     {"verification", &Spent::verification},
     {"making", &Spent::making},
     {"profile", &Spent::profile}}};

}  // namespace crossover::bench
