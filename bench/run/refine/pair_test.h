// SPDX-License-Identifier: Apache-2.0
// Which of two sides is faster, decided pair by pair: a sequential sign test. It knows nothing of
// what is measured. docs/method/refinement.md gives the method and its sources.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>

namespace crossover::bench {

enum class Winner { neither, first, second };

/// The other side; `neither` of neither.
Winner other(Winner winner);

/// log((n + 1) C(n, s) / 2^n) of s pairs won among n that one side won: the smaller, the less the
/// sides look equal. Of equal sides it falls below log(error), at any n, with a probability of at
/// most `error` (Robbins 1970). By lgamma(): exact to about 1e-9 for a million pairs.
double log_evidence(std::int64_t pairs, std::int64_t won);

class PairTest {
 public:
  /// `error`: the probability of a sure winner that is none. After `most_pairs` it stays open.
  PairTest(double error, std::int64_t most_pairs) : error_(error), most_pairs_(most_pairs) {}

  /// The times of one pair. The shorter one wins; of equal times none does, and the pair counts for
  /// neither side, but as one of the most that may be taken.
  void add(double first_seconds, double second_seconds);

  /// The side that is sure to win.
  [[nodiscard]] Winner winner() const;
  /// No winner is sure, and one may still become so before the last pair.
  [[nodiscard]] bool is_open() const;

  [[nodiscard]] std::int64_t pairs() const { return first_ + second_; }  ///< without ties
  [[nodiscard]] std::int64_t won_by_first() const { return first_; }
  [[nodiscard]] std::int64_t ties() const { return ties_; }

 private:
  [[nodiscard]] bool is_sure(std::int64_t pairs, std::int64_t won) const;

  double error_;
  std::int64_t most_pairs_;
  std::int64_t first_ = 0, second_ = 0, ties_ = 0;
};

/// One measurement of a side, in seconds; none: it can't be had.
using Measurement = std::function<std::optional<double>()>;

/// Adds pairs until the test is decided or can't be any more. By chance (`order`) the first or the
/// second side begins, so that neither what drifts nor what comes and goes helps one of them.
/// `begin` is called before each. False where a measurement could not be had.
bool run_pairs(PairTest& test, std::mt19937_64& order, const std::function<void()>& begin,
               const Measurement& first, const Measurement& second);

/// The faster side of two rows that were measured one after the other, where no repetition of one
/// is as long as one of the other; `neither` where some are, or where there are none.
Winner apart(std::span<const double> first_seconds, std::span<const double> second_seconds);

}  // namespace crossover::bench
