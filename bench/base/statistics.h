// SPDX-License-Identifier: Apache-2.0
// What several times say together.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace crossover::bench {

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
