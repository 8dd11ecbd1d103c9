// SPDX-License-Identifier: Apache-2.0
// Which of two sides is faster, decided pair by pair, and where that changes over a grid of sizes:
// looked for between the rungs of a ladder on which it is known more or less. It knows nothing of
// what is measured. docs/method/runs.md gives the methods and their sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace crossover::bench {

// ---- Two sides at one size: a sequential sign test of pairs.

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

// ---- Many sizes

/// A size whose winner is known from before, without pairs, and that is not tried again: a guess.
struct Rung {
  std::size_t place = 0;  ///< in the grid
  Winner winner = Winner::neither;
  bool is_same = false;  ///< both sides run one program there, so that neither can win
};

/// The place of a change: between the last sure win of `below` and the first sure win of the other.
struct Interval {
  Winner below = Winner::neither;   ///< `neither`: no side is sure anywhere
  std::optional<std::size_t> low;   ///< place of the last sure win of `below`; none: it has none
  std::optional<std::size_t> high;  ///< of the first sure win of the other after that, or none

  friend bool operator==(const Interval&, const Interval&) = default;
};

struct Search {
  std::vector<Interval> intervals;  ///< in the order of the grid
  bool complete = true;             ///< false: it ended before it was done
};

/// What pairs say of the size at that place: its sure winner, or `neither` where it stays open.
/// None: no more can be tried.
using TrySize = std::function<std::optional<Winner>(std::size_t place)>;

/// Looks for each change between neighbouring rungs. `ladder`: in the order of its places, of which
/// the first and the last one bound the grid; each of the others is a size to try. At a rung
/// without a winner the place beside it is tried instead, but not between two that are the same.
/// What lies open belongs to the interval.
/// Changes that come in twos between two rungs are not seen. Tries a place once, and `most_sizes`
/// at most.
Search find_changes(const std::vector<Rung>& ladder, std::size_t most_sizes,
                    const TrySize& try_size);

}  // namespace crossover::bench
