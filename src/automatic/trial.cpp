// SPDX-License-Identifier: Apache-2.0
#include "trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "crossover/alive.h"

namespace crossover {
namespace {

constexpr double turn_seconds = 2e-3;  ///< far above a clock's reading and a thread's wake-up
constexpr double most_seconds = 0.2;   ///< of the turns of one Program
constexpr double long_seconds = 0.05;  ///< of the least positions
constexpr double much = 1.3;           ///< more than a first time is longer than a second
constexpr int fewest_turns = 3;        ///< before two that do not overlap are told apart
constexpr int most_turns = 9;

double seconds_of(Program& program, std::int64_t runs, std::int64_t times, const Stopwatch& now) {
  const double start = now();
  for (std::int64_t i = 0; i < times; ++i) {
    program.enqueue(0, runs);
    program.wait();
  }
  return now() - start;
}

bool are_apart(const std::vector<double>& one, const std::vector<double>& other) {
  const auto [least, most] = std::minmax_element(one.begin(), one.end());
  const auto [other_least, other_most] = std::minmax_element(other.begin(), other.end());
  return *most < *other_least || *other_most < *least;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double seconds_of_least(Program& program, const Trials& trials, const Stopwatch& now) {
  const double first = seconds_of(program, trials.least, 1, now);
  return first >= long_seconds ? first : std::max(seconds_of(program, trials.least, 1, now), 1e-9);
}

double ratio_of_seconds(const Contender& first, const Contender& second, const Trials& trials,
                        const Stopwatch& now) {
  const double ratio = second.seconds / first.seconds;
  if (std::min(first.seconds, second.seconds) >= long_seconds &&
      std::max(ratio, 1 / ratio) >= much) {
    return ratio;
  }
  const double slower = std::max(first.seconds, second.seconds);
  const auto fitting = [&](double seconds, std::int64_t most) {
    return static_cast<std::int64_t>(
        std::clamp(std::floor(turn_seconds / seconds), 1.0, static_cast<double>(most)));
  };
  // Both the same: a short batch at the end of the order, or an update there, counts for both.
  constexpr std::int64_t most_times = 1000;
  const std::int64_t fit = fitting(slower, trials.runs / trials.least);
  const std::int64_t at_once = fit * trials.least;
  const std::int64_t times = fitting(slower * static_cast<double>(fit), most_times);
  std::vector<double> of_first;
  std::vector<double> of_second;
  double spent = 0;
  for (int turn = 0; turn < most_turns && (turn == 0 || spent < 2 * most_seconds); ++turn) {
    of_first.push_back(seconds_of(first.program, at_once, times, now));
    of_second.push_back(seconds_of(second.program, at_once, times, now));
    spent += of_first.back() + of_second.back();
    alive();
    if (turn + 1 >= fewest_turns && are_apart(of_first, of_second)) {
      break;
    }
  }
  return median(of_second) / median(of_first);
}

}  // namespace crossover
