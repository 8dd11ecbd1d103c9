// SPDX-License-Identifier: Apache-2.0
// Between measuring and the user: a line for each finished row, and the row into the result file.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/spent.h"
#include "file/result_file.h"
#include "rows/row.h"

namespace crossover::bench {

class Reporter {
 public:
  struct Output {
    ResultFile* file = nullptr;  ///< null: none is written
    std::size_t kept = 0;        ///< rows in the file that an earlier run has measured
    std::optional<Instant> end;  ///< of the run's budget
  };

  /// `selected`: the names that will run, for "row n of N" and the time left.
  Reporter(Rows& rows, const std::vector<std::string>& selected, Output output);

  /// Over all rows that are not complete yet.
  void begin_pass(int number, int of);
  /// A row that has had its turns; with more repetitions than before, they take the place of the
  /// former. It is shown once, when it has all that are wanted.
  void add(const std::string& name);
  /// After the last row: shows those that remained without all that were wanted.
  void finish();

  [[nodiscard]] std::size_t unmeasured() const { return unmeasured_.size(); }

 private:
  void show(const std::string& name);
  void show_progress() const;
  void clear_progress() const;
  [[nodiscard]] std::string time_left() const;
  [[nodiscard]] double seconds_done(const std::string& name) const;

  Rows& rows_;
  Output output_;
  Instant start_ = std::chrono::steady_clock::now();
  double expected_seconds_ = 0;  ///< of all selected rows
  std::size_t selected_;         ///< with those of an earlier run
  std::string pass_;             ///< "pass 2 of 9"; empty: there is one
  std::size_t of_pass_ = 0;      ///< rows that had their turns in it
  std::set<std::string> reported_, shown_, unmeasured_;
};

}  // namespace crossover::bench
