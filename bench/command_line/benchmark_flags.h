// SPDX-License-Identifier: Apache-2.0
// Google Benchmark's part of the command line: what its flags mean for rows, and what it is told.
#pragma once

#include <string>
#include <vector>

#include "command_line/arguments.h"

namespace crossover::bench {

/// The names that --benchmark_filter selects: a regular expression found anywhere in the name;
/// "-" before it selects the others. UsageError where none is.
std::vector<std::string> selected(const std::vector<std::string>& names, const std::string& filter);

/// `passed_on`: flags that it alone knows. UsageError where it does not.
void initialize_benchmark(const Effort& effort, const std::vector<std::string>& passed_on = {});

/// Google Benchmark takes flags from variables as well: BENCHMARK_FILTER=x is --benchmark_filter=x.
/// Returns them as arguments and removes the variables, so that they go the way of all others.
std::vector<std::string> take_flags_from_environment();

}  // namespace crossover::bench
