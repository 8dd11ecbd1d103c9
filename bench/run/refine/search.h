// SPDX-License-Identifier: Apache-2.0
// Where the winner of two sides changes over a grid of sizes: looked for between the rungs of a
// ladder on which it is known more or less. It knows nothing of what is measured.
// docs/method/refinement.md gives the method.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "run/refine/pair_test.h"

namespace crossover::bench {

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
