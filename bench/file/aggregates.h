// SPDX-License-Identifier: Apache-2.0
// Mean, median, standard deviation and coefficient of variation of a row's repetitions, as Google
// Benchmark reports them where it takes all of them in one call.
#pragma once

#include <vector>

#include "file/row_json.h"

namespace crossover::bench {

/// Of an even number of values the mean of the two in the middle. There must be one at least.
double median(std::vector<double> values);

/// Standard deviation over mean, of two values at least.
double variation(const std::vector<double>& values);

/// Of the repetitions without an error; none where these are fewer than two.
std::vector<Repetition> aggregates(const std::vector<Repetition>& runs);

}  // namespace crossover::bench
