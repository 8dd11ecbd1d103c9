// SPDX-License-Identifier: Apache-2.0
#include "run/estimates.h"

#include <algorithm>
#include <utility>

namespace crossover::bench {

namespace {

/// What is known of a row before it is measured may be wrong by this factor.
constexpr double doubt = 2;

/// Rows of one kind are misjudged alike.
std::string kind_of(const Row& row) {
  return family_of(row.spec).name + " " + row.device->name() +
         (is_of_a_peer(row) ? " of a peer" : "");
}

/// By which factor rows took longer than guessed; 1 where none has begun.
double misjudged(double took, double guessed) {
  constexpr double weight = 0.5;  // seconds that count for the guess
  return (took + weight) / (guessed + weight);
}

}  // namespace

int repetitions_of(const Row& row, int of_sweep) {
  return row.repetitions > 0 ? row.repetitions : of_sweep;
}

int instances_of(int repetitions, double seconds, double making_seconds, int most) {
  constexpr double share = 1.0 / 4;
  constexpr int fewest = 3;
  const double paid = share * seconds / std::max(making_seconds, 1e-9);
  const int worth = 1 + static_cast<int>(std::min(paid, 1.0 * repetitions));
  return std::clamp(std::max(fewest, worth), 1, std::max(1, std::min(repetitions, most)));
}

Estimates::Estimates(const Limits& limits, const Spent& spent, Rows& rows,
                     std::vector<std::string> names)
    : limits_(limits),
      spent_(spent),
      rows_(rows),
      names_(std::move(names)),
      lent_before_(spent.lent) {
  double sum = 0;
  for (const std::string& name : names_) {
    sum += rows_[name].turns.planned;
  }
  constexpr double generous = 0.8;
  if (sum >= generous * left()) {
    most_at_first_ = fewest_repetitions;
  }
}

int Estimates::taken(const std::string& name) const {
  return static_cast<int>(rows_[name].record.repetitions.size());
}

bool Estimates::is_measured(const std::string& name) const {
  return rows_[name].record.outcome == Outcome::measured;
}

int Estimates::repetitions_at_first(const std::string& name) const {
  return std::min(repetitions_of(rows_[name], limits_.repetitions), most_at_first_);
}

int Estimates::instances_of(const Group& group) const {
  constexpr int few = 3;  // a process that brings a framework takes seconds to start
  int most = limits_.most_passes;
  for (const std::string& name : group) {
    most = has_a_share(name) ? std::min(most, few) : most;
    const RowCosts& costs = rows_[name].costs;
    const int repetitions = rows_[name].turns.wanted;
    most = std::min(
        most, bench::instances_of(repetitions, costs.first_making + repetitions * costs.repetition,
                                  costs.making.value_or(0), limits_.most_passes));
  }
  return most;
}

bool Estimates::has_a_share(const std::string& name) const {
  return limits_.peers_share && is_of_a_peer(rows_[name]);
}

int Estimates::repetitions_again(const std::string& name) const {
  const Row& row = rows_[name];
  return is_measured(name) && !row.turns.is_closed && !has_a_share(name)
             ? std::min(disturbed_repetitions(row), repetitions_at_first(name))
             : 0;
}

double Estimates::next_turns(const std::vector<std::string>& names) const {
  double sum = 0;
  for (const std::string& name : names) {
    const RowCosts& costs = rows_[name].costs;
    sum += costs.making.value_or(0) + costs.repetition;
  }
  return sum;
}

bool Estimates::is_late(const std::string& name) const {
  const Turns& turns = rows_[name].turns;
  return turns.first &&
         turns.least > left() + tolerated_share_of_budget / 2 * limits_.budget_seconds.value_or(0);
}

double Estimates::guessed(const std::string& name) const {
  const Row& row = rows_[name];
  const int spared = repetitions_of(row, limits_.repetitions) - repetitions_at_first(name);
  return row.turns.planned - spared * row.expected.repetition;
}

std::map<std::string, Estimates::Experience> Estimates::experience() const {
  std::map<std::string, Experience> all;
  for (const std::string& name : names_) {
    const Row& row = rows_[name];
    if (row.turns.first && row.turns.kept == 0 && row.record.has_had_a_turn()) {
      Experience& of_kind = all[kind_of(row)];
      const int open = repetitions_at_first(name) - taken(name);  // less than 0: beyond the plan
      of_kind.took += row.turns.took;
      of_kind.guessed += guessed(name) - open * row.expected.repetition;
    }
  }
  return all;
}

double Estimates::promised(const Which& which) const {
  double sum = 0;
  for (const std::string& name : names_) {
    const Row& row = rows_[name];
    const int left = row.turns.wanted - taken(name);
    if ((!which || which(name)) && row.turns.first && left > 0 && is_measured(name) &&
        !row.turns.is_closed) {
      const int made = std::clamp(instances_of({name}) - row.record.instances, 0, left);
      sum += left * row.costs.repetition + made * row.costs.making.value_or(row.costs.repetition);
    }
  }
  return sum;
}

double Estimates::expected(const Group& group, int repetitions) const {
  const std::map<std::string, Experience> known = experience();
  double sum = 0;
  for (const std::string& name : group) {
    const Row& row = rows_[name];
    const int spared = std::max(0, repetitions_at_first(name) - repetitions);
    const auto of_kind = known.find(kind_of(row));
    sum += (guessed(name) - spared * row.expected.repetition) *
           (of_kind == known.end() ? 1 : misjudged(of_kind->second.took, of_kind->second.guessed));
  }
  return sum;
}

bool Estimates::admits(const Group& group, double end) const {
  if (!limits_.budget_seconds) {
    return true;
  }
  const double seconds = expected(group, std::numeric_limits<int>::max());
  const double others = promised();
  // Should it take longer than expected, it still ends in time.
  return seconds <= left() - others &&
         doubt * seconds <= left() - others + tolerated_share_of_budget * budget() &&
         spent_.all() + others + seconds <= end;
}

double Estimates::taken_by_others() const {
  double sum = lent_before_;
  for (const std::string& name : names_) {
    sum += has_a_share(name) ? rows_[name].turns.took : 0;
  }
  return sum;
}

double Estimates::most_of_others(double closer) const {
  const double share = *limits_.peers_share;
  if (limits_.budget_seconds) {
    return share * budget();
  }
  const auto own = [this](const std::string& name) { return !has_a_share(name); };
  return share / (1 - share) *
         (spent_.all() - taken_by_others() + promised(own) + not_begun(own) + closer);
}

bool Estimates::share_admits(const Group& theirs, double closer) const {
  const auto of_others = [this](const std::string& name) { return has_a_share(name); };
  return taken_by_others() + promised(of_others) +
             expected(theirs, std::numeric_limits<int>::max()) <=
         most_of_others(closer);
}

bool Estimates::share_lasts(const std::string& name, double closer) const {
  return taken_by_others() + next_turns({name}) <= most_of_others(closer);
}

double Estimates::again(const Group& group) const {
  double sum = 0;
  for (const std::string& name : group) {
    if (const int repetitions = repetitions_again(name); repetitions > 0) {
      const RowCosts& costs = rows_[name].costs;
      sum += costs.making.value_or(costs.first_making) + repetitions * costs.repetition;
    }
  }
  return sum;
}

double Estimates::left_of_all(double closer, bool are_disturbed_done) const {
  if (limits_.budget_seconds) {
    return std::max(0.0, left());
  }
  double disturbed = 0;
  for (const std::string& name : names_) {
    disturbed += are_disturbed_done ? 0 : again({name});
  }
  const auto of_others = [this](const std::string& name) { return has_a_share(name); };
  const auto own = [this](const std::string& name) { return !has_a_share(name); };
  double theirs = promised(of_others) + not_begun(of_others);
  if (limits_.peers_share) {
    theirs = std::min(theirs, std::max(0.0, most_of_others(closer) - taken_by_others()));
  }
  return promised(own) + not_begun(own) + theirs + closer + std::min(disturbed, most_again());
}

double Estimates::not_begun(const Which& which) const {
  const std::map<std::string, Experience> known = experience();
  Experience all;
  for (const auto& [kind, of_kind] : known) {
    all.took += of_kind.took;
    all.guessed += of_kind.guessed;
  }
  double sum = 0;
  for (const std::string& name : names_) {
    const Row& row = rows_[name];
    if ((which && !which(name)) || row.turns.is_left_out) {
      continue;
    }
    if (!row.record.has_had_a_turn()) {
      const auto of_kind = known.find(kind_of(row));
      sum += guessed(name) * (of_kind != known.end()
                                  ? misjudged(of_kind->second.took, of_kind->second.guessed)
                              : all.guessed > 0 ? all.took / all.guessed
                                                : 1);
    } else if (is_measured(name) && !row.turns.first) {  // by an earlier run
      sum += std::max(0, row.turns.wanted - taken(name)) * row.expected.repetition;
    }
  }
  return sum;
}

}  // namespace crossover::bench
