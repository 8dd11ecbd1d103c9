// SPDX-License-Identifier: Apache-2.0
#include "run/refine/refine_limits.h"

#include <algorithm>

namespace crossover::bench {

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
