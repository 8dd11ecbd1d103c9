// SPDX-License-Identifier: Apache-2.0
// What a sweep measures next. It goes through its rows in passes: in each pass a row is planned,
// allocated and measured again, by a new worker, so that its repetitions also differ by what
// differs between runs. Where somebody waits for it, what answers comes first, with few
// repetitions. Then what the question needs (the ladders, ceilings, and within a budget every
// network), then a closer look, then the other rows; at last rows that ended their worker or that
// other programs disturbed have another try, and within a budget the noisiest more repetitions.
// Where rows of other programs (run/peer.h) have a share of the time, each takes turns with the row
// of ours that does its work, and has its first one while there is time for it.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/times.h"
#include "rows/row.h"
#include "run/estimates.h"
#include "run/plan.h"

namespace crossover::bench {

/// Rows, with how many repetitions each is to have.
using Targets = std::vector<std::pair<std::string, int>>;

// ---- What can come next.

/// All rows are finished; behind the first pass new workers go on.
struct BeginPass {
  std::string words;  ///< "first answer", "pass 2 of 9"; empty: there is one
  bool is_first = true;
};
/// They have repetitions in turn until each has as many or there is no time for its next one.
struct TakeTurns {
  Targets targets;
};
/// What answers is measured.
struct TellAnswer {};
/// A look between the sizes, for so many seconds at most.
struct LookCloser {
  double seconds = 0;
};
/// A row that ended its worker begins anew.
struct TryAgain {
  std::string name;
};
/// What follows finds new workers.
struct RenewWorkers {};
using SweepStep =
    std::variant<BeginPass, TakeTurns, TellAnswer, LookCloser, TryAgain, RenewWorkers>;

/// Which neighbours of a plan that do the same work take turns, so that drift hits all alike.
enum class Together {
  devices,  ///< those on several devices
  all,  ///< also those on one; else a row of another program does with the one that it is beside
};

struct ScheduleOptions {
  Estimates::Limits limits;
  Together together = Together::devices;
  /// Of the run, by which what answers is told; none: nobody waits for it.
  std::optional<double> answer_seconds;
  double closer_seconds = 0;  ///< the most that the closer look takes where there is no budget
  bool shuffled = false;      ///< work comes in random order, and each round of its rows in another
  /// Whether the machine is quiet now, so that disturbed rows can be had again.
  std::function<bool()> is_quiet = [] { return false; };
};

class Schedule {
 public:
  /// `has_networks`: the closer look needs the networks alone, which have a pass of their own,
  /// though an earlier run may have measured them; else it needs all rows.
  Schedule(ScheduleOptions options, const Spent& spent, Rows& rows, std::vector<PlannedRow> plan,
           bool has_networks);

  /// None: the sweep is over. What the last step came to stands in its rows.
  std::optional<SweepStep> next();

  /// Whether there is no time for one more turn of a row that has had some.
  [[nodiscard]] bool is_late(const std::string& name) const { return estimates_.is_late(name); }
  /// Brings rows that have a turn now into the order in which they have it.
  void order_round(Targets& targets);

  /// What all that follows will take, or what is left of the budget.
  [[nodiscard]] double seconds_left() const;

  /// The rows of the plan that had no turn. Behind the last step: for which there was no time.
  [[nodiscard]] std::vector<std::string> left_open() const;

 private:
  /// In this order.
  enum class Stage {
    begin,
    answer,
    tell,
    question,
    look_behind_it,
    others,
    look_behind_all,
    second_tries,
    disturbed,
    noisiest,
    end
  };

  /// Pass after pass over rows, until each has its repetitions.
  struct Passes {
    std::vector<Group> groups;  ///< of this pass
    std::vector<Group> unfinished;
    std::size_t place = 0;  ///< of the next group
    int number = 0, of = 1;
    int most = std::numeric_limits<int>::max();  ///< repetitions
  };

  [[nodiscard]] std::vector<Group> groups_of(const std::vector<PlannedRow>& plan) const;
  [[nodiscard]] std::vector<PlannedRow> without_a_turn(const std::vector<PlannedRow>& plan) const;
  void begin(Stage stage);
  void begin_passes(const std::vector<PlannedRow>& plan);
  void begin_answer();
  [[nodiscard]] bool is_spread() const;
  [[nodiscard]] bool is_answered() const;
  void look_closer();
  void begin_second_tries();
  void begin_disturbed();
  std::optional<SweepStep> next_of_passes();
  std::optional<SweepStep> next_of_noisiest();
  [[nodiscard]] bool has_begun(const Group& group) const;
  /// Takes out of a group in its first pass what is not to begin: ours where there is no time for
  /// them, and with them or alone those of others, whose time is a share.
  void take_out_late(Group& group);
  /// Whether there is time for rows that have not begun.
  [[nodiscard]] bool admits(const Group& group);
  [[nodiscard]] bool share_admits(const Group& theirs);
  /// Of the closer look.
  [[nodiscard]] double closer_left() const;
  /// How many repetitions the row should have behind this pass.
  [[nodiscard]] int target(const Group& group, const std::string& name) const;
  void keep_if_unfinished(const Group& group);
  /// Takes in what the turns came to that were the last step.
  void look_back();

  ScheduleOptions options_;
  const Spent& spent_;
  Rows& rows_;
  std::vector<PlannedRow> question_, others_;
  bool has_networks_;
  Estimates estimates_;
  std::mt19937 random_{std::random_device{}()};

  Stage stage_ = Stage::begin;
  std::deque<SweepStep> steps_;  ///< of the stage, before its passes
  Passes passes_;
  Group visited_;   ///< whose turns are the last step
  Targets before_;  ///< the repetitions that they had
  // In seconds of the run, once they have begun.
  std::optional<double> ceilings_end_, closer_ends_;
  bool are_disturbed_done_ = false;
};

/// Whether some of them are in a pass that measures the networks before all else.
bool has_networks(const std::vector<PlannedRow>& plan);

}  // namespace crossover::bench
