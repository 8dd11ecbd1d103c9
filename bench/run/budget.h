// SPDX-License-Identifier: Apache-2.0
// A sweep within a given time: first what the question needs (ceilings, then every network, with
// few repetitions), then a closer look, then the other rows by their worth, then more repetitions
// of the noisiest rows.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rows/row.h"
#include "run/sampler.h"
#include "run/schedule.h"
#include "run/spent.h"

namespace crossover::bench {

/// The rows of a plan in the order in which they are worth their time.
std::vector<PlannedRow> by_question(const std::vector<PlannedRow>& plan, Rows& rows);

/// Whether some of them are in the pass that measures the networks before all else.
bool has_networks(const std::vector<PlannedRow>& plan);

class Budget {
 public:
  /// From the start of `spent` on. `repetitions`: of the sweep.
  Budget(double seconds, const Spent& spent, Rows& rows, Sampler& sampler, int repetitions)
      : seconds_(seconds),
        spent_(spent),
        rows_(rows),
        sampler_(sampler),
        repetitions_(repetitions) {}

  /// `plan`: by_question(), or another. `look_closer` is called with the most seconds that it may
  /// take, once what it needs is measured: the networks, which an earlier run may have measured, or
  /// all rows, without a pass of that name (has_networks). May be empty.
  void measure(const std::vector<PlannedRow>& plan, bool has_networks,
               const std::function<void(double seconds)>& look_closer);

  /// The rows of the plan for which there was no time.
  [[nodiscard]] const std::vector<std::string>& left_open() const { return left_open_; }

  [[nodiscard]] double left() const { return seconds_ - spent_.all(); }

 private:
  using Group = std::vector<std::string>;

  /// Before anything is known of rows like it.
  [[nodiscard]] double guessed(const std::string& name) const;
  [[nodiscard]] double expected(const Group& group) const;
  [[nodiscard]] bool fits(double expected_seconds) const;
  /// Returns those that had no turn, for later.
  std::vector<PlannedRow> measure_pass(const std::vector<PlannedRow>& pass, double share);
  void take(const Group& group, const std::function<int(const std::string& name)>& wanted);
  void repeat_noisiest();
  [[nodiscard]] int few_repetitions(const std::string& name) const;

  double seconds_;
  const Spent& spent_;
  Rows& rows_;
  Sampler& sampler_;
  int repetitions_;
  int most_at_first_ = 0;                  ///< repetitions
  std::map<std::string, double> planned_;  ///< by row, with what it is the first to need
  /// By kind of row: seconds that rows took, and those that were guessed.
  std::map<std::string, std::pair<double, double>> experience_;
  /// By row: seconds of its first repetition, with all before, and of the last one.
  std::map<std::string, std::pair<double, double>> took_;
  std::vector<std::string> left_open_;
};

}  // namespace crossover::bench
