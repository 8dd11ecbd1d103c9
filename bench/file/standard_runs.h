// SPDX-License-Identifier: Apache-2.0
// A row's repetitions as Google Benchmark's own reporters take them, and their mean, median,
// standard deviation and coefficient of variation, as it reports them.
#pragma once

#include <benchmark/benchmark.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "rows/row.h"

namespace crossover::bench {

using StandardRun = benchmark::BenchmarkReporter::Run;

/// Of an even number of values the mean of the two in the middle. There must be one at least.
double median(std::vector<double> values);

/// Standard deviation over mean, of two values at least.
double variation(const std::vector<double>& values);

/// The repetitions with all counters, those that follow from the time too; behind them, where the
/// row failed or was skipped, one that says why.
std::vector<StandardRun> standard_runs(const std::string& name, const Row& row);

/// Of the repetitions without an error; none where these are fewer than two.
std::vector<StandardRun> aggregates(const std::vector<StandardRun>& runs);

/// The same as entries of a result file.
std::vector<nlohmann::ordered_json> aggregates_json(const std::vector<StandardRun>& runs);

}  // namespace crossover::bench
