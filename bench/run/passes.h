// SPDX-License-Identifier: Apache-2.0
// A sweep as a list of passes over its rows: who has the next turn, and when it ends. In each pass
// a row is planned, allocated and measured again, by a new worker, so that its repetitions also
// differ by what differs between runs. Within a budget what the question needs comes first (the
// ladder, ceilings, then every network, with few repetitions), then a closer look, then the other
// rows, then more repetitions of the noisiest.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/times.h"
#include "rows/row.h"
#include "run/order.h"
#include "run/sampler.h"

namespace crossover::bench {

/// Of a row without a number of its own as many as the sweep has.
int repetitions_of(const Row& row, int of_sweep);

/// Which neighbours of a plan that do the same work take turns, so that drift hits all alike.
enum class Together {
  devices,  ///< those on several devices
  all,      ///< also those on one
};

struct PassOptions {
  int repetitions = 0;                   ///< of rows that have no number of their own
  std::optional<double> budget_seconds;  ///< from the start of `spent` on
  Together together = Together::devices;
  double closer_seconds = 0;  ///< the most that the closer look takes where there is no budget
  int most_passes = 1;        ///< over the same rows: with one, each row has one instance
  bool shuffled = false;      ///< work comes in random order, and each round of its rows in another
  /// Of what the run has taken, for how long rows may be measured again that other programs
  /// disturbed, where there is no budget.
  double share_again = 0.5;
  /// Whether the machine is quiet now, so that such rows can be had again.
  std::function<bool()> is_quiet = [] { return false; };
};

class Passes {
 public:
  Passes(PassOptions options, const Spent& spent, Rows& rows, Sampler& sampler)
      : options_(std::move(options)), spent_(spent), rows_(rows), sampler_(sampler) {}

  /// `look_closer` is called with the most seconds that it may take, once what it needs is
  /// measured: the networks where they have a pass of their own, which an earlier run may have
  /// measured (has_networks), else all rows. May be empty.
  void measure(const std::vector<PlannedRow>& plan, bool has_networks,
               const std::function<void(double seconds)>& look_closer);

  /// What all that follows will take, or what is left of the budget: rows that have begun by what
  /// they took, others by what rows like them took, the closer look, and disturbed rows again.
  [[nodiscard]] double seconds_left() const;

  /// The rows of the plan for which there was no time.
  [[nodiscard]] const std::vector<std::string>& left_open() const { return left_open_; }

 private:
  /// Rows of the same work, which alternate, repetition by repetition.
  using Group = std::vector<std::string>;
  /// How many repetitions each of a group is to have.
  using Targets = std::vector<std::pair<std::string, int>>;

  struct Pass {
    int number = 1, of = 1;
  };
  /// In seconds.
  struct Turns {
    double planned = 0;           ///< with what the row is the first to need
    std::optional<double> first;  ///< its first turn in this run, with all before
    double least = 0;             ///< of the turns that it had
    bool is_closed = false;       ///< no more can be had of it
  };

  [[nodiscard]] int taken(const std::string& name) const;
  /// Whether more repetitions of the row can be had, as far as its record says.
  [[nodiscard]] bool is_measured(const std::string& name) const;
  [[nodiscard]] double left() const {
    return options_.budget_seconds ? *options_.budget_seconds - spent_.all()
                                   : std::numeric_limits<double>::infinity();
  }
  [[nodiscard]] std::vector<Group> groups_of(const std::vector<PlannedRow>& plan) const;
  /// Before anything is known of rows like it.
  [[nodiscard]] double guessed(const std::string& name) const;
  /// By which factor rows of that kind took longer than guessed; 1 where none is known.
  [[nodiscard]] double misjudged(const std::string& kind) const;
  /// Whether the group ends in time, before that share of the budget is used.
  [[nodiscard]] bool admits(const Group& group, double share) const;
  /// Seconds that rows will take which have begun.
  [[nodiscard]] double promised() const;
  /// Repetitions that it will get again as other programs disturbed them, and their seconds.
  [[nodiscard]] int repetitions_again(const std::string& name) const;
  [[nodiscard]] double seconds_again(const Group& group) const;
  /// How long disturbed rows may be measured again where there is no budget.
  [[nodiscard]] double most_seconds_again() const { return options_.share_again * spent_.all(); }
  [[nodiscard]] int few_repetitions(const std::string& name) const;
  /// Pass after pass over these rows, until each has its few repetitions. Returns those that had no
  /// turn, for later.
  std::vector<PlannedRow> measure_rows(const std::vector<PlannedRow>& plan);
  /// How many repetitions the row should have behind that pass.
  [[nodiscard]] int target(const Group& group, const std::string& name, const Pass& pass) const;
  /// Of each row of the group, by what making them costs.
  [[nodiscard]] int instances_of(const Group& group) const;
  void visit(const Group& group, const Pass& pass);
  /// Takes repetitions of these rows in turn until each has its target or there is no time for its
  /// next one, and reports them. What they hold at once must fit: a row for which no memory is left
  /// has its turns when the others are done.
  void take(const Targets& targets);
  void repeat_noisiest();
  /// Rows with repetitions that other programs disturbed get as many more, where these have ended,
  /// those that are worth most first.
  void repeat_disturbed(const std::vector<PlannedRow>& plan);

  PassOptions options_;
  const Spent& spent_;
  Rows& rows_;
  Sampler& sampler_;
  std::mt19937 random_{std::random_device{}()};
  int most_at_first_ = std::numeric_limits<int>::max();  ///< repetitions
  std::map<std::string, Turns> turns_;                   ///< by row of the plan
  /// By kind of row: seconds that rows took, and those that were guessed.
  std::map<std::string, std::pair<double, double>> experience_;
  std::optional<double> closer_ends_;  ///< in seconds of the run, once it has begun
  bool disturbed_are_done_ = false;
  std::vector<std::string> left_open_;
};

/// Whether some of them are in the pass that measures the networks before all else.
bool has_networks(const std::vector<PlannedRow>& plan);

}  // namespace crossover::bench
