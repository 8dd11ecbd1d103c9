// SPDX-License-Identifier: Apache-2.0
// What the rows of a sweep will take, by what they and rows like them took, and whether there is
// time for it.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/times.h"
#include "rows/row.h"

namespace crossover::bench {

/// Rows of the same work, which alternate, repetition by repetition.
using Group = std::vector<std::string>;

/// How far from its budget a run may end, as a share of it.
inline constexpr double tolerated_share_of_budget = 0.05;

/// Of a row, that readers take a verdict from.
inline constexpr int fewest_repetitions = 5;

/// Of a row without a number of its own as many as the sweep has.
int repetitions_of(const Row& row, int of_sweep);

/// A row is made so often for its repetitions: as often as there are some, where that makes it at
/// most a quarter longer than the `seconds` that it takes with one instance; else as often as does,
/// and at least 3 times. At most `most`.
int instances_of(int repetitions, double seconds, double making_seconds, int most);

class Estimates {
 public:
  struct Limits {
    int repetitions = 0;                   ///< of rows that have no number of their own
    std::optional<double> budget_seconds;  ///< from the start of `spent` on
    int most_passes = 1;                   ///< over the same rows
    /// Of what the run has taken, for how long rows may be measured again that other programs
    /// disturbed, where there is no budget.
    double share_again = 0.5;
    /// Of the run's time, what rows of other programs may take; none: what they need.
    std::optional<double> peers_share;
  };

  /// `names`: the rows of the plan, which know what they are planned to take. Where that is all of
  /// the budget or more, each gets the fewest repetitions at first that readers take a verdict
  /// from.
  Estimates(const Limits& limits, const Spent& spent, Rows& rows, std::vector<std::string> names);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] int taken(const std::string& name) const;
  /// Whether more repetitions of the row can be had, as far as its record says.
  [[nodiscard]] bool is_measured(const std::string& name) const;
  /// Repetitions that it gets before all rows of the plan have had theirs.
  [[nodiscard]] int repetitions_at_first(const std::string& name) const;
  /// How many each of the group is to have, by what making them costs.
  [[nodiscard]] int instances_of(const Group& group) const;
  /// Whether others measure the row, who have a share of the time.
  [[nodiscard]] bool has_a_share(const std::string& name) const;
  /// Repetitions that it is to get again as other programs disturbed them.
  [[nodiscard]] int repetitions_again(const std::string& name) const;

  // ---- In seconds.

  [[nodiscard]] double budget() const {
    return limits_.budget_seconds.value_or(std::numeric_limits<double>::infinity());
  }
  [[nodiscard]] double left() const { return budget() - spent_.all(); }
  /// Of one more turn of each of these rows.
  [[nodiscard]] double next_turns(const std::vector<std::string>& names) const;
  /// Whether there is no time for one more turn of the row, which has had some.
  [[nodiscard]] bool is_late(const std::string& name) const;
  /// Of rows that have not begun, with so many repetitions, by what rows like them took.
  [[nodiscard]] double expected(const Group& group, int repetitions) const;
  /// Whether the group ends in time, before so many seconds of the run.
  [[nodiscard]] bool admits(const Group& group, double end) const;
  /// What rows took that others measure and that have a share, and these others before them.
  [[nodiscard]] double taken_by_others() const;
  /// Whether such rows, which have not begun, end within their share of the time, and whether one
  /// more turn of one that has does; `closer` as below.
  [[nodiscard]] bool share_admits(const Group& theirs, double closer) const;
  [[nodiscard]] bool share_lasts(const std::string& name, double closer) const;
  [[nodiscard]] double again(const Group& group) const;
  /// How long disturbed rows may be measured again in all.
  [[nodiscard]] double most_again() const {
    return limits_.budget_seconds ? left() : limits_.share_again * spent_.all();
  }
  /// What all that follows will take, or what is left of the budget: rows that have begun by what
  /// they took, others by what rows like them took, `closer` for the look between the sizes, and
  /// disturbed rows again unless they had that.
  [[nodiscard]] double left_of_all(double closer, bool are_disturbed_done) const;

 private:
  /// Of rows that have begun in this run: what they took, and what was guessed.
  struct Experience {
    double took = 0, guessed = 0;
  };

  /// Before anything is known of rows like it.
  [[nodiscard]] double guessed(const std::string& name) const;
  using Which = std::function<bool(const std::string& name)>;

  /// By kind of row.
  [[nodiscard]] std::map<std::string, Experience> experience() const;
  /// What rows will take which have begun.
  [[nodiscard]] double promised(const Which& which = {}) const;
  /// The share of others, by what all will have taken.
  [[nodiscard]] double most_of_others(double closer) const;
  /// What those will take that have not, or that an earlier run has begun.
  [[nodiscard]] double not_begun(const Which& which = {}) const;

  Limits limits_;
  const Spent& spent_;
  Rows& rows_;
  std::vector<std::string> names_;
  double lent_before_;  ///< to other programs, before the first row
  int most_at_first_ = std::numeric_limits<int>::max();  ///< repetitions
};

}  // namespace crossover::bench
