// SPDX-License-Identifier: Apache-2.0
// Between measuring and the user: a line for each finished row, and the row into the result file.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/times.h"
#include "file/result_file.h"
#include "rows/row.h"

namespace crossover::bench {

class Reporter {
 public:
  struct Output {
    ResultFile* file = nullptr;  ///< null: none is written
    std::size_t kept = 0;        ///< rows in the file that an earlier run has measured
    bool may_leave = false;      ///< rows for which there will be no time, nobody knows how many
  };

  /// `selected`: how many rows will run, for "row n of N".
  Reporter(Rows& rows, std::size_t selected, Output output)
      : rows_(rows), output_(output), selected_(selected + output.kept) {}

  /// From here on lines tell how long all that follows will take.
  void tell_time_left(std::function<double()> seconds) { seconds_left_ = std::move(seconds); }

  /// Over all rows that are not complete yet. `words`: "pass 2 of 9"; empty: there is one.
  void begin_pass(const std::string& words, bool is_first);
  /// A row that has had its turns; with more repetitions than before, they take the place of the
  /// former. It is shown once, when it has all that are wanted.
  void add(const std::string& name);
  /// After the last row: shows those that remained without all that were wanted.
  void finish();

  [[nodiscard]] std::size_t unmeasured() const { return unmeasured_.size(); }

 private:
  void show(const std::string& name);
  /// Without a terminal, of a long run: nobody would see a row before its last pass.
  void show_so_far(const std::string& name) const;
  void show_progress() const;
  void clear_progress() const;

  Rows& rows_;
  Output output_;
  Instant start_ = std::chrono::steady_clock::now();
  std::size_t selected_;  ///< with those of an earlier run
  std::function<double()> seconds_left_ = [] { return 0.0; };
  std::string pass_;
  bool is_first_pass_ = true;
  std::size_t of_pass_ = 0;  ///< rows that had their turns in it
  std::set<std::string> reported_, shown_, unmeasured_;
};

}  // namespace crossover::bench
