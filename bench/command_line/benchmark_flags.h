// SPDX-License-Identifier: Apache-2.0
// Google Benchmark's own flags: passed on to it, and read here where our files and messages depend
// on them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "command_line/arguments.h"

namespace crossover::bench {

class BenchmarkFlags {
 public:
  /// `arguments`: "--benchmark_...=value" as on the command line; the last of a kind counts.
  /// Throws UsageError where a value can't be used.
  BenchmarkFlags(const std::vector<std::string>& arguments, int repetitions,
                 double min_time_seconds);

  [[nodiscard]] int repetitions() const { return repetitions_; }
  [[nodiscard]] double min_time_seconds() const { return min_time_seconds_; }
  [[nodiscard]] bool lists_only() const;
  /// --benchmark_enable_random_interleaving
  [[nodiscard]] bool shuffles() const;
  /// --benchmark_context=key=value,...
  [[nodiscard]] std::map<std::string, std::string> context() const;

  /// The names that --benchmark_filter selects: a regular expression found anywhere in the name;
  /// "-" before it selects the others. UsageError where none is.
  [[nodiscard]] std::vector<std::string> select(const std::vector<std::string>& names) const;

  /// Hands the flags over, but for the filter: only what it selects is to be registered. UsageError
  /// where Google Benchmark does not know one.
  void initialize();

 private:
  [[nodiscard]] bool is_set(const std::string& flag) const;

  std::vector<std::string> arguments_;  ///< Google Benchmark keeps pointers into them
  std::map<std::string, std::string> values_;
  int repetitions_;
  double min_time_seconds_;
};

/// Those of the command line, whose effort they may change.
BenchmarkFlags take_benchmark_flags(Arguments& arguments);

/// Google Benchmark takes flags from variables as well: BENCHMARK_FILTER=x is --benchmark_filter=x.
/// Returns them as arguments and removes the variables, so that they go the way of all others.
std::vector<std::string> take_flags_from_environment();

}  // namespace crossover::bench
