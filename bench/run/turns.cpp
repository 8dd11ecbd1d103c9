// SPDX-License-Identifier: Apache-2.0
#include "run/turns.h"

#include <map>
#include <string>
#include <utility>
#include <variant>

namespace crossover::bench {

namespace {

/// One that a schedule's steps are handed to.
class Turntaker {
 public:
  Turntaker(Schedule& schedule, const Spent& spent, Rows& rows, Sampler& sampler,
            const SweepActions& actions)
      : schedule_(schedule), spent_(spent), rows_(rows), sampler_(sampler), actions_(actions) {}

  void operator()(const BeginPass& pass) { sampler_.begin_pass(pass.words, pass.is_first); }
  void operator()(const TryAgain& row) { sampler_.begin_anew(row.name); }
  void operator()(const RenewWorkers& /*all*/) { sampler_.renew_workers(); }
  void operator()(const TellAnswer& /*what answers*/) {
    if (actions_.tell_answer) {
      actions_.tell_answer();
    }
  }
  void operator()(const LookCloser& look) {
    if (actions_.look_closer) {
      actions_.look_closer(look.seconds);
    }
  }
  void operator()(const TakeTurns& turns) { take(turns.targets); }

 private:
  /// Round after round, and reports the rows. What they hold at once must fit: a row for which no
  /// memory is left has its turns when the others are done.
  void take(const Targets& targets) {
    std::map<std::string, int> before;
    for (const auto& [name, wanted] : targets) {
      before[name] = taken(name);
    }
    Targets later;
    for (Targets open = targets; !open.empty();) {
      schedule_.order_round(open);
      Targets unfinished;
      for (const auto& one : open) {
        const auto& [name, wanted] = one;
        if (taken(name) >= wanted || schedule_.is_late(name)) {
          continue;
        }
        if (repeat(name)) {
          if (taken(name) < wanted) {
            unfinished.push_back(one);
          }
        } else if (rows_[name].record.out_of_memory && targets.size() > 1 &&
                   taken(name) == before[name]) {
          sampler_.put_back(name);
          later.push_back(one);
        }
      }
      open = std::move(unfinished);
    }
    for (const auto& [name, wanted] : targets) {
      sampler_.finish(name);
    }
    for (const auto& one : later) {
      take({one});
    }
  }

  [[nodiscard]] int taken(const std::string& name) const {
    return static_cast<int>(rows_[name].record.repetitions.size());
  }

  /// Whether it has one more.
  bool repeat(const std::string& name) {
    const double begun = spent_.all();
    const bool has_one_more = sampler_.repeat(name).has_value();
    const double seconds = spent_.all() - begun;
    Turns& turns = rows_[name].turns;
    turns.least = turns.first ? std::min(turns.least, seconds) : seconds;
    turns.first = turns.first.value_or(seconds);
    turns.took += seconds;
    return has_one_more;
  }

  Schedule& schedule_;
  const Spent& spent_;
  Rows& rows_;
  Sampler& sampler_;
  const SweepActions& actions_;
};

}  // namespace

void measure(Schedule& schedule, const Spent& spent, Rows& rows, Sampler& sampler,
             const SweepActions& actions) {
  Turntaker turns(schedule, spent, rows, sampler, actions);
  while (const std::optional<SweepStep> step = schedule.next()) {
    std::visit(turns, *step);
  }
}

}  // namespace crossover::bench
