// SPDX-License-Identifier: Apache-2.0
#include "run/refine/pair_test.h"

#include <algorithm>
#include <cmath>

namespace crossover::bench {

Winner other(Winner winner) {
  return winner == Winner::first    ? Winner::second
         : winner == Winner::second ? Winner::first
                                    : Winner::neither;
}

double log_evidence(std::int64_t pairs, std::int64_t won) {
  const auto log_factorial = [](std::int64_t n) { return std::lgamma(static_cast<double>(n) + 1); };
  const auto n = static_cast<double>(pairs);
  return std::log(n + 1) + log_factorial(pairs) - log_factorial(won) - log_factorial(pairs - won) -
         n * std::log(2.0);
}

void PairTest::add(double first_seconds, double second_seconds) {
  ++(first_seconds < second_seconds ? first_ : second_seconds < first_seconds ? second_ : ties_);
}

bool PairTest::is_sure(std::int64_t pairs, std::int64_t won) const {
  return log_evidence(pairs, won) < std::log(error_);
}

Winner PairTest::winner() const {
  return !is_sure(pairs(), first_) ? Winner::neither
         : first_ > second_        ? Winner::first
                                   : Winner::second;
}

bool PairTest::is_open() const {
  const std::int64_t left = most_pairs_ - pairs() - ties_;
  // Each pair more that the leading side wins makes it surer: all of them tell what can be reached.
  return left > 0 && winner() == Winner::neither &&
         is_sure(pairs() + left, std::max(first_, second_) + left);
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
  const auto [first_least, first_most] = std::ranges::minmax(first_seconds);
  const auto [second_least, second_most] = std::ranges::minmax(second_seconds);
  return first_most < second_least   ? Winner::first
         : second_most < first_least ? Winner::second
                                     : Winner::neither;
}

}  // namespace crossover::bench
