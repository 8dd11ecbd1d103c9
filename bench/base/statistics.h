// SPDX-License-Identifier: Apache-2.0
// What several times say together.
#pragma once

#include <vector>

namespace crossover::bench {

/// Of an even number of values the mean of the two in the middle. There must be one at least.
double median(std::vector<double> values);

/// Standard deviation over mean, of two values at least.
double variation(const std::vector<double>& values);

}  // namespace crossover::bench
