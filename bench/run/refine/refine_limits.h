// SPDX-License-Identifier: Apache-2.0
// How far a refinement goes, and what it takes for granted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "run/refine/pair_test.h"

namespace crossover::bench {

struct RefineLimits {
  double error = 0.05;             ///< probability that any sure winner is none
  std::size_t most_sizes = 32;     ///< that may be tried
  std::int64_t most_pairs = 100;   ///< of a size
  double seconds = 60;             ///< after which nothing more is tried
  double min_time_seconds = 0.01;  ///< of one repetition; less where the sweep's is less

  /// Of one size, so that `error` holds for all of them (Bonferroni).
  [[nodiscard]] double error_of_size() const { return error / static_cast<double>(most_sizes); }
};

/// The faster side of two rows that were measured one after the other, where no repetition of one
/// is as long as one of the other; `neither` where some are, or where there are none.
Winner apart(std::span<const double> first_seconds, std::span<const double> second_seconds);

}  // namespace crossover::bench
