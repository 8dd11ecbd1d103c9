// SPDX-License-Identifier: Apache-2.0
// A row as the result file has it. Format: results/README.md.
#pragma once

#include <benchmark/benchmark.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rows/row.h"

namespace crossover::bench {

using Repetition = benchmark::BenchmarkReporter::Run;

/// Why there is no time in it; empty: there is one.
std::string error_of(const Repetition& run);

/// Wall-clock time of one iteration.
double seconds_of(const Repetition& run);

/// Facts stand once; the repetitions have what another run would measure differently.
struct RowJson {  // NOLINT(bugprone-exception-escape): a destructor of nlohmann's allocates
  nlohmann::ordered_json facts;
  std::vector<nlohmann::ordered_json> repetitions;
};

/// `runs`: the repetitions of `row`, without the counters that follow from others and the time.
RowJson row_json(const std::vector<Repetition>& runs, const Row& row);

/// Google Benchmark's mean, median, ... of a row's repetitions.
std::vector<nlohmann::ordered_json> aggregates_json(const std::vector<Repetition>& runs);

}  // namespace crossover::bench
