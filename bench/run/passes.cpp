// SPDX-License-Identifier: Apache-2.0
#include "run/passes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/say.h"
#include "base/times.h"
#include "command_line/axes.h"

namespace crossover::bench {

namespace {

/// How far from its budget a run may end, as a share of it.
constexpr double tolerated = 0.05;
/// What is known of a row before it is measured may be wrong by this factor.
constexpr double doubt = 2;

/// Rows of one kind are misjudged alike.
std::string kind_of(const Row& row) {
  return family_of(row) + (row.device->is_host ? " cpu" : " gpu");
}

/// What is computed, however and wherever.
std::string work_of(const Row& row) {
  Configuration work = row.configuration;
  std::erase_if(work,
                [](const auto& pair) { return find_axis(pair.first).role != AxisRole::what; });
  return row_name(work);
}

/// "1 row is", "2 rows are".
std::string counted(std::size_t rows, const std::string& one, const std::string& several) {
  return std::to_string(rows) + (rows == 1 ? " row " + one : " rows " + several);
}

}  // namespace

bool has_networks(const std::vector<PlannedRow>& plan) {
  return std::ranges::any_of(
      plan, [](const PlannedRow& planned) { return planned.pass == pass_of_networks; });
}

int repetitions_of(const Row& row, int of_sweep) {
  return row.repetitions > 0 ? row.repetitions : of_sweep;
}

int Passes::taken(const std::string& name) const {
  return static_cast<int>(rows_[name].record.repetitions.size());
}

bool Passes::is_measured(const std::string& name) const {
  return rows_[name].record.outcome == Outcome::measured;
}

int Passes::few_repetitions(const std::string& name) const {
  return std::min(repetitions_of(rows_[name], options_.repetitions), most_at_first_);
}

std::vector<Passes::Group> Passes::groups_of(const std::vector<PlannedRow>& plan) const {
  std::vector<Group> of_same_work;
  std::string work;
  for (const PlannedRow& planned : plan) {
    const std::string own = work_of(rows_[planned.name]);
    if (of_same_work.empty() || own != work) {
      of_same_work.emplace_back();
      work = own;
    }
    of_same_work.back().push_back(planned.name);
  }
  std::vector<Group> groups;
  for (const Group& group : of_same_work) {
    const bool share_a_device = std::ranges::all_of(group, [&](const std::string& name) {
      return rows_[name].device == rows_[group.front()].device;
    });
    if (options_.together == Together::all || !share_a_device) {
      groups.push_back(group);
    } else {
      std::ranges::transform(group, std::back_inserter(groups),
                             [](const std::string& name) { return Group{name}; });
    }
  }
  return groups;
}

// ---- What rows will take

double Passes::guessed(const std::string& name) const {
  const Row& row = rows_[name];
  const int spared = repetitions_of(row, options_.repetitions) - few_repetitions(name);
  return turns_.at(name).planned - spared * row.expected.repetition;
}

double Passes::misjudged(const std::string& kind) const {
  const auto known = experience_.find(kind);
  constexpr double weight = 0.5;  // seconds that count for the guess
  return known == experience_.end()
             ? 1
             : (known->second.first + weight) / (known->second.second + weight);
}

double Passes::seconds_left() const {
  if (options_.budget_seconds) {
    return std::max(0.0, left());
  }
  double took = 0;
  double guess = 0;
  for (const auto& [kind, seconds] : experience_) {
    took += seconds.first;
    guess += seconds.second;
  }
  const double misjudged_by_all = guess > 0 ? took / guess : 1;
  const double of_closer =
      closer_ends_ ? std::max(0.0, *closer_ends_ - spent_.all()) : options_.closer_seconds;
  double sum = promised() + of_closer;
  double again = 0;
  for (const auto& [name, turns] : turns_) {
    const Row& row = rows_[name];
    if (!row.record.has_had_a_turn()) {
      const std::string kind = kind_of(row);
      sum += guessed(name) * (experience_.contains(kind) ? misjudged(kind) : misjudged_by_all);
    } else if (is_measured(name) && !turns.first) {  // by an earlier run
      sum += std::max(0, row.wanted - taken(name)) * row.expected.repetition;
    }
    again += seconds_again({name});
  }
  return sum + std::min(again, most_seconds_again());
}

double Passes::promised() const {
  double sum = 0;
  for (const auto& [name, turns] : turns_) {
    const int left = rows_[name].wanted - taken(name);
    if (turns.first && left > 0 && is_measured(name) && !turns.is_closed) {
      const RowCosts& costs = sampler_.costs(name);
      const int made = std::clamp(instances_of({name}) - rows_[name].record.instances, 0, left);
      sum += left * costs.repetition + made * costs.making.value_or(costs.repetition);
    }
  }
  return sum;
}

bool Passes::admits(const Group& group, double share) const {
  if (!options_.budget_seconds) {
    return true;
  }
  double seconds = 0;
  for (const std::string& name : group) {
    seconds += guessed(name) * misjudged(kind_of(rows_[name]));
  }
  const double budget = *options_.budget_seconds;
  const double others = promised();
  // Should it take longer than expected, it still ends in time.
  return seconds <= left() - others && doubt * seconds <= left() - others + tolerated * budget &&
         spent_.all() + others + seconds <= share * budget;
}

// ---- Turns

int Passes::instances_of(const Group& group) const {
  int most = options_.most_passes;
  for (const std::string& name : group) {
    const RowCosts& costs = sampler_.costs(name);
    const int repetitions = rows_[name].wanted;
    most = std::min(
        most, bench::instances_of(repetitions, costs.first_making + repetitions * costs.repetition,
                                  costs.making.value_or(0), options_.most_passes));
  }
  return most;
}

/// Instances are spread over the passes, repetitions over the instances.
int Passes::target(const Group& group, const std::string& name, const Pass& pass) const {
  const int made = rows_[name].record.instances;
  const int instances = std::min(instances_of(group), pass.of);
  const int passes_left = pass.of - pass.number + 1;
  const int instances_left = std::clamp(instances - made, 1, passes_left);
  const bool is_due =
      made == 0 || instances_left == passes_left || (pass.number - 1) * instances >= made * pass.of;
  const int open = rows_[name].wanted - taken(name);
  return taken(name) + (is_due && open > 0 ? (open + instances_left - 1) / instances_left : 0);
}

void Passes::visit(const Group& group, const Pass& pass) {
  Targets due;
  double seconds = 0;
  std::map<std::string, int> before;
  for (const std::string& name : group) {
    before[name] = taken(name);
    const int wanted = turns_[name].is_closed ? 0 : target(group, name, pass);
    if (wanted > before[name]) {
      due.emplace_back(name, wanted);
      const RowCosts& costs = sampler_.costs(name);
      seconds += costs.making.value_or(0) + costs.repetition;
    }
  }
  if (seconds > left()) {
    return;
  }
  take(due);
  for (const auto& [name, wanted] : due) {
    turns_[name].is_closed = taken(name) == before[name];
  }
}

void Passes::take(const Targets& targets) {
  std::map<std::string, double> took;  // of rows that had a turn
  std::map<std::string, int> before;
  for (const auto& [name, wanted] : targets) {
    before[name] = taken(name);
  }
  Targets later;
  for (Targets open = targets; !open.empty();) {
    if (options_.shuffled) {
      std::ranges::shuffle(open, random_);
    }
    Targets unfinished;
    for (const auto& one : open) {
      const auto& [name, wanted] = one;
      Turns& turns = turns_[name];
      const bool is_late =
          turns.first && turns.least > left() + tolerated / 2 * options_.budget_seconds.value_or(0);
      if (taken(name) >= wanted || is_late) {
        continue;
      }
      const double begun = spent_.all();
      const bool has_one_more = sampler_.repeat(name).has_value();
      const double seconds = spent_.all() - begun;
      took[name] += seconds;
      turns.least = turns.first ? std::min(turns.least, seconds) : seconds;
      turns.first = turns.first.value_or(seconds);
      if (has_one_more) {
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
  for (const auto& [name, seconds] : took) {
    const Row& row = rows_[name];
    if (before[name] == 0 && row.record.has_had_a_turn()) {
      auto& [taken_by_all, guess] = experience_[kind_of(row)];
      taken_by_all += seconds;
      guess += guessed(name) - std::max(0, row.wanted - taken(name)) * row.expected.repetition;
    }
  }
  for (const auto& one : later) {
    take({one});
  }
}

std::vector<PlannedRow> Passes::measure_rows(const std::vector<PlannedRow>& plan) {
  constexpr double of_ceilings = 1.0 / 3;  // of the budget, before which they must end
  Pass pass;
  std::set<std::string> ceilings;
  for (const PlannedRow& planned : plan) {
    Row& row = rows_[planned.name];
    row.wanted = few_repetitions(planned.name);
    pass.of = std::max(pass.of, std::min(row.wanted, options_.most_passes));
    if (planned.pass == pass_of_ceilings) {
      ceilings.insert(planned.name);
    }
  }
  std::vector<Group> groups = groups_of(plan);
  for (; pass.number <= pass.of && !groups.empty(); ++pass.number) {
    sampler_.begin_pass(pass.number, pass.of);
    if (options_.shuffled) {
      std::ranges::shuffle(groups, random_);
    }
    std::vector<Group> unfinished;
    for (Group& group : groups) {
      const double share = ceilings.contains(group.front()) ? of_ceilings : 1 + tolerated;
      if (pass.number == 1 && !admits(group, share)) {
        continue;
      }
      visit(group, pass);
      const bool is_finished = std::ranges::all_of(group, [&](const std::string& name) {
        return !is_measured(name) || turns_[name].is_closed || taken(name) >= rows_[name].wanted;
      });
      if (!is_finished) {
        unfinished.push_back(std::move(group));
      }
    }
    groups = std::move(unfinished);
  }
  // Also of a group that had its turns: one that was put back may have had none.
  std::vector<PlannedRow> later;
  std::ranges::copy_if(plan, std::back_inserter(later), [&](const PlannedRow& planned) {
    return !rows_[planned.name].record.has_had_a_turn();
  });
  return later;
}

// ---- More repetitions

int Passes::repetitions_again(const std::string& name) const {
  return !is_measured(name) || turns_.at(name).is_closed || disturbed_are_done_
             ? 0
             : std::min(disturbed_repetitions(rows_[name]), few_repetitions(name));
}

double Passes::seconds_again(const Group& group) const {
  double sum = 0;
  for (const std::string& name : group) {
    if (const int repetitions = repetitions_again(name); repetitions > 0) {
      const RowCosts& costs = sampler_.costs(name);
      sum += costs.making.value_or(costs.first_making) + repetitions * costs.repetition;
    }
  }
  return sum;
}

void Passes::repeat_disturbed(const std::vector<PlannedRow>& plan) {
  std::vector<PlannedRow> disturbed;
  std::ranges::copy_if(plan, std::back_inserter(disturbed), [&](const PlannedRow& planned) {
    return repetitions_again(planned.name) > 0;
  });
  const bool can_be_had = !disturbed.empty() && options_.is_quiet();
  std::ranges::stable_sort(disturbed, {}, [&](const PlannedRow& one) {
    return find_family(family_of(rows_[one.name])).worth;
  });
  double open = options_.budget_seconds ? left() : most_seconds_again();
  std::vector<Targets> groups;
  std::size_t count = 0;
  for (const Group& group : groups_of(disturbed)) {
    if (const double seconds = seconds_again(group); can_be_had && seconds <= open) {
      open -= seconds;
      count += group.size();
      Targets& targets = groups.emplace_back();
      for (const std::string& name : group) {
        targets.emplace_back(name, taken(name) + repetitions_again(name));
      }
    }
  }
  disturbed_are_done_ = true;  // what is wanted of them says the rest
  if (!can_be_had) {
    return;
  }
  const std::size_t others = disturbed.size() - count;
  if (groups.empty()) {
    say(counted(others, "stays", "stay") +
        " as other programs disturbed them: there is no time to measure them again");
    return;
  }
  say(counted(count, "is", "are") + " measured again, which other programs disturbed" +
      (others == 0 ? ""
                   : "; " + std::to_string(others) + " more stay as they are, for lack of time"));
  sampler_.renew_workers();
  for (const Targets& targets : groups) {
    for (const auto& [name, wanted] : targets) {
      rows_[name].wanted = wanted;
    }
  }
  std::ranges::for_each(groups, [&](const Targets& targets) { take(targets); });
}

/// Each at most a few times as many as the sweep's.
void Passes::repeat_noisiest() {
  constexpr int most = 3;
  std::set<std::string> exhausted;
  for (;;) {
    std::string noisiest;
    double noise = 0;
    int wanted = 0;
    for (const auto& [name, turns] : turns_) {
      const bool can_be_had = turns.first && !exhausted.contains(name) && is_measured(name) &&
                              rows_[name].device->failure.empty();
      if (!can_be_had || taken(name) < 2 || *turns.first > left()) {
        continue;
      }
      const int own = repetitions_of(rows_[name], options_.repetitions);
      const int fitting =
          static_cast<int>(std::min(1e6, (left() - *turns.first) / turns.least + 1));
      const int possible = std::min({own, most * own - taken(name), fitting});
      const double own_noise = variation(rows_[name].record.seconds()) / std::sqrt(taken(name));
      if (possible >= 1 && own_noise > noise) {
        noisiest = name;
        noise = own_noise;
        wanted = taken(name) + possible;
      }
    }
    if (noisiest.empty()) {
      return;
    }
    const int before = taken(noisiest);
    take({{noisiest, wanted}});
    if (taken(noisiest) == before) {  // for it no memory is left, say
      exhausted.insert(noisiest);
    }
  }
}

// ---- All of it

void Passes::measure(const std::vector<PlannedRow>& plan, bool has_networks,
                     const std::function<void(double seconds)>& look_closer) {
  double sum = 0;
  for (const PlannedRow& planned : plan) {
    turns_[planned.name].planned = planned.seconds;
    sum += planned.seconds;
  }
  constexpr double generous = 0.8;
  constexpr int few = 5;  // the fewest that readers take a verdict from
  if (sum >= generous * left()) {
    most_at_first_ = few;
  }
  // What the question needs, in its order, and what does not fit now again beside the others.
  std::vector<PlannedRow> first;
  std::vector<PlannedRow> others;
  std::ranges::partition_copy(plan, std::back_inserter(first), std::back_inserter(others),
                              [](const PlannedRow& row) {
                                return row.pass == pass_of_ladder || row.pass == pass_of_ceilings ||
                                       row.pass == pass_of_networks;
                              });
  const auto closer = [&] {
    closer_ends_ = spent_.all() + options_.closer_seconds;
    if (look_closer && left() > 0) {
      look_closer(left() / 2);
    }
    closer_ends_ = 0;
  };
  std::vector<PlannedRow> open = measure_rows(first);
  if (has_networks) {
    closer();
  }
  open.insert(open.end(), others.begin(), others.end());
  left_open_ = names_of(measure_rows(open));
  if (!has_networks) {
    closer();
  }
  std::vector<PlannedRow> again;
  for (const std::string& name : sampler_.to_try_again()) {
    if (admits({name}, 1 + tolerated)) {
      again.push_back({.name = name, .pass = "again"});
      sampler_.begin_anew(name);
      turns_[name].is_closed = false;
    }
  }
  measure_rows(again);
  repeat_disturbed(plan);
  if (options_.budget_seconds) {
    repeat_noisiest();
  }
}

}  // namespace crossover::bench
