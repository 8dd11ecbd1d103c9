// SPDX-License-Identifier: Apache-2.0
// What every family of benchmarks tells the reporters about its rows, beside Google Benchmark's own
// record.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "crossover/verify.h"

namespace crossover::bench {

/// A row's configuration: keys and values in the order of its name.
using Configuration = std::vector<std::pair<std::string, std::string>>;

/// {{"family", "Epoch"}, {"model", "disc-2"}} -> "Epoch/model:disc-2".
std::string row_name(const Configuration& configuration);

enum class Outcome { measured, failed, skipped };

struct Row {
  Configuration configuration;
  double expected_seconds = 0;  ///< a guess, for the time left
  Outcome outcome = Outcome::measured;
  std::vector<std::string> quality;  ///< what casts doubt on the figures, a sentence each
  std::optional<Verification> verification;
  /// Adds the counters that follow from the wall-clock seconds of one iteration.
  void (*derive)(benchmark::UserCounters& counters, double seconds) = nullptr;
};

/// By name, in the order of registration kept beside it.
class Rows {
 public:
  void add(Row row);
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] Row& operator[](const std::string& name) { return rows_.at(name); }

 private:
  std::vector<std::string> names_;
  std::map<std::string, Row> rows_;
};

}  // namespace crossover::bench
