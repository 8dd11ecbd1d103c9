// SPDX-License-Identifier: Apache-2.0
// Between Google Benchmark and the user: a line for each finished row, and the row into the result
// file.
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "result_file.h"
#include "row.h"

namespace crossover::bench {

class Reporter : public benchmark::BenchmarkReporter {
 public:
  struct Output {
    ResultFile* file = nullptr;  ///< null: none is written
    bool aggregates = false;     ///< into the file as well
    /// One of Google Benchmark's reporters to show rows instead of our lines; may be null.
    std::unique_ptr<benchmark::BenchmarkReporter> standard;
  };

  /// `selected`: the names that will run, for "row n of N" and the time left.
  Reporter(Rows& rows, const std::vector<std::string>& selected, Output output);

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& measured) override;
  void Finalize() override;

  [[nodiscard]] int unmeasured() const { return unmeasured_; }

 private:
  void show(const std::string& name, const std::vector<Run>& runs);
  [[nodiscard]] std::string time_left() const;

  Rows& rows_;
  Output output_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double expected_seconds_ = 0;       ///< of all selected rows
  double expected_seconds_done_ = 0;  ///< of the finished ones
  std::size_t selected_;
  std::set<std::string> reported_;
  int unmeasured_ = 0;
};

}  // namespace crossover::bench
