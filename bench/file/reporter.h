// SPDX-License-Identifier: Apache-2.0
// Between measuring and the user: a line for each finished row, and the row into the result file.
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "file/result_file.h"
#include "file/standard_runs.h"
#include "rows/row.h"
#include "run/spent.h"

namespace crossover::bench {

class Reporter {
 public:
  struct Output {
    ResultFile* file = nullptr;    ///< null: none is written
    bool aggregates = false;       ///< into the file as well
    bool aggregates_only = false;  ///< where there are any, the standard reporter shows no others
    std::size_t kept = 0;          ///< rows in the file that an earlier run has measured
    std::optional<Instant> end;    ///< of the run's budget
    /// One of Google Benchmark's reporters to show rows instead of our lines; may be null.
    std::unique_ptr<benchmark::BenchmarkReporter> standard;
  };

  /// `selected`: the names that will run, for "row n of N" and the time left.
  Reporter(Rows& rows, const std::vector<std::string>& selected, Output output);

  /// A row that has had its turns; with more repetitions than before, they take the place of the
  /// former.
  void add(const std::string& name);
  /// After the last row.
  void finish() const;

  [[nodiscard]] std::size_t unmeasured() const { return unmeasured_.size(); }

 private:
  void show(const std::string& name, const std::vector<StandardRun>& runs);
  [[nodiscard]] std::string time_left() const;

  Rows& rows_;
  Output output_;
  Instant start_ = std::chrono::steady_clock::now();
  double expected_seconds_ = 0;       ///< of all selected rows
  double expected_seconds_done_ = 0;  ///< of the finished ones
  std::size_t selected_;              ///< with those of an earlier run
  std::set<std::string> reported_, unmeasured_;
};

}  // namespace crossover::bench
