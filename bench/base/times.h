// SPDX-License-Identifier: Apache-2.0
// Times: where the wall time of a run goes, of the clock that no one sets, and what several of them
// say together.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <numeric>
#include <utility>
#include <vector>

namespace crossover::bench {

using Instant = std::chrono::steady_clock::time_point;

inline double seconds_since(Instant start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// What one of the system's clocks shows.
inline double seconds_of(clockid_t clock) {
  constexpr double nanosecond = 1e-9;
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * nanosecond;
}

/// bench counts in seconds. The times of repetitions are milliseconds in workers' answers and in
/// result files, as Google Benchmark has them.
inline double seconds_in(double milliseconds) { return 1e-3 * milliseconds; }
inline double milliseconds_in(double seconds) { return 1e3 * seconds; }

/// How often and how long a row is measured.
struct Effort {
  int repetitions = 0;
  double min_time_seconds = 0;  ///< of one repetition
};

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

// ---- What several times say together.

/// Of an even number of values the mean of the two in the middle. There must be one at least.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Standard deviation over mean, of two values at least.
inline double variation(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  const double squares = std::accumulate(
      values.begin(), values.end(), 0.0,
      [mean](double sum, double value) { return sum + (value - mean) * (value - mean); });
  return mean == 0 ? 0 : std::sqrt(squares / (count - 1)) / mean;
}

}  // namespace crossover::bench
