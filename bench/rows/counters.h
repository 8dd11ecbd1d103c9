// SPDX-License-Identifier: Apache-2.0
// The counters: the numbers of a row beside its times, and all that is to be known of each. A new
// one is a line of the table in counters.cpp; result files hold the table (results/README.md).
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "crossover/backend.h"

namespace crossover::bench {

enum class CounterKind {
  fact,        ///< of the row: the same in all repetitions, on any run
  once,        ///< measured when its program is made
  repetition,  ///< measured in each repetition
};

struct Counter {
  std::string key;
  std::string unit;
  CounterKind kind = CounterKind::fact;
  std::string description;
};

const std::vector<Counter>& counters();

/// Of one that is in no table, such as those of --benchmark_perf_counters: repetition.
CounterKind kind_of_counter(const std::string& key);

/// context.crossover.counters of a result file.
nlohmann::ordered_json counters_json();

// ---- A Program's profile as counters of a row: seconds_product, seconds_elementwise, ...

/// "product", "copy_to_device", ...
std::string to_string(OpCategory category);

/// Sets the counters of all categories that the program has, from the median, by total time, of as
/// many profiles as fit `seconds`: one at least, 21 at most.
void count_profile(Program& program, double seconds, std::map<std::string, double>& counters);

/// Whether it is one of these counters.
bool is_profile(const std::string& counter);

}  // namespace crossover::bench
