// SPDX-License-Identifier: Apache-2.0
#include "run/refine/pair_test.h"

#include <algorithm>
#include <cmath>

namespace crossover::bench {

Winner other(Winner winner) {
  switch (winner) {
    case Winner::first:
      return Winner::second;
    case Winner::second:
      return Winner::first;
    case Winner::neither:
      break;
  }
  return Winner::neither;
}

double log_evidence(std::int64_t pairs, std::int64_t won) {
  const auto log_factorial = [](std::int64_t n) { return std::lgamma(static_cast<double>(n) + 1); };
  const auto n = static_cast<double>(pairs);
  return std::log(n + 1) + log_factorial(pairs) - log_factorial(won) - log_factorial(pairs - won) -
         n * std::log(2.0);
}

PairTest::PairTest(double error, std::int64_t most_pairs)
    : log_error_(std::log(error)), most_pairs_(most_pairs) {}

void PairTest::add(double first_seconds, double second_seconds) {
  if (first_seconds < second_seconds) {
    ++won_[0];
  } else if (second_seconds < first_seconds) {
    ++won_[1];
  } else {
    ++ties_;
  }
}

bool PairTest::is_sure(std::int64_t pairs, std::int64_t won) const {
  return log_evidence(pairs, won) < log_error_;
}

Winner PairTest::winner() const {
  if (!is_sure(pairs(), won_[0])) {
    return Winner::neither;
  }
  return won_[0] > won_[1] ? Winner::first : Winner::second;
}

bool PairTest::is_open() const {
  const std::int64_t left = most_pairs_ - pairs() - ties_;
  if (left <= 0 || winner() != Winner::neither) {
    return false;
  }
  // Each pair more that the leading side wins makes it surer: all of them tell what can be reached.
  const std::int64_t all = pairs() + left;
  return is_sure(all, won_[0] + left) || is_sure(all, won_[1] + left);
}

bool run_pairs(PairTest& test, std::mt19937_64& order, const std::function<void()>& begin,
               const Measurement& first, const Measurement& second) {
  while (test.is_open()) {
    const bool first_begins = order() % 2 == 0;
    begin();
    const std::optional<double> one = first_begins ? first() : second();
    const std::optional<double> two = !one ? one : first_begins ? second() : first();
    if (!one || !two) {
      return false;
    }
    test.add(first_begins ? *one : *two, first_begins ? *two : *one);
  }
  return true;
}

Winner apart(std::span<const double> first_seconds, std::span<const double> second_seconds) {
  if (first_seconds.empty() || second_seconds.empty()) {
    return Winner::neither;
  }
  const auto [first_least, first_most] =
      std::minmax_element(first_seconds.begin(), first_seconds.end());
  const auto [second_least, second_most] =
      std::minmax_element(second_seconds.begin(), second_seconds.end());
  if (*first_most < *second_least) {
    return Winner::first;
  }
  return *second_most < *first_least ? Winner::second : Winner::neither;
}

}  // namespace crossover::bench
