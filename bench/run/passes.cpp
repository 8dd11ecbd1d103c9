// SPDX-License-Identifier: Apache-2.0
#include "run/passes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include "base/say.h"
#include "base/statistics.h"
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

}  // namespace

bool has_networks(const std::vector<PlannedRow>& plan) {
  return std::any_of(plan.begin(), plan.end(),
                     [](const PlannedRow& planned) { return planned.pass == pass_of_networks; });
}

int Passes::few_repetitions(const std::string& name) const {
  return std::min(repetitions_of(rows_[name], options_.repetitions), most_at_first_);
}

double Passes::guessed(const std::string& name) const {
  const Row& row = rows_[name];
  const int spared = repetitions_of(row, options_.repetitions) - few_repetitions(name);
  return planned_.at(name) - spared * row.expected.repetition;
}

double Passes::misjudged(const std::string& kind) const {
  const auto known = experience_.find(kind);
  constexpr double weight = 0.5;  // seconds that count for the guess
  return known == experience_.end()
             ? 1
             : (known->second.first + weight) / (known->second.second + weight);
}

double Passes::expected(const Group& group) const {
  return std::accumulate(group.begin(), group.end(), 0.0, [&](double sum, const std::string& name) {
    return sum + guessed(name) * misjudged(kind_of(rows_[name]));
  });
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
  for (const auto& [name, seconds] : planned_) {
    const Row& row = rows_[name];
    if (!row.record.has_had_a_turn()) {
      const std::string kind = kind_of(row);
      sum += guessed(name) * (experience_.contains(kind) ? misjudged(kind) : misjudged_by_all);
    } else if (row.record.outcome == Outcome::measured && !took_.contains(name)) {  // earlier run's
      const auto taken = static_cast<int>(row.record.repetitions.size());
      sum += std::max(0, row.wanted - taken) * row.expected.repetition;
    }
    again += seconds_again(name);
  }
  return sum + std::min(again, most_seconds_again());
}

double Passes::promised() const {
  double sum = 0;
  for (const auto& [name, turns] : took_) {
    const Row& row = rows_[name];
    const int left = row.wanted - static_cast<int>(row.record.repetitions.size());
    if (left > 0 && row.record.outcome == Outcome::measured && !closed_.contains(name)) {
      const RowCosts& costs = sampler_.costs(name);
      const int made = std::clamp(instances_of({name}) - row.record.instances, 0, left);
      sum += left * costs.repetition + made * costs.making.value_or(costs.repetition);
    }
  }
  return sum;
}

bool Passes::admits(const Group& group, double share) const {
  if (!options_.budget_seconds) {
    return true;
  }
  const double seconds = expected(group);
  const double budget = *options_.budget_seconds;
  const double others = promised();
  // Should it take longer than expected, it still ends in time.
  return seconds <= left() - others && doubt * seconds <= left() - others + tolerated * budget &&
         spent_.all() + others + seconds <= share * budget;
}

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
int Passes::wanted(const Group& group, const std::string& name, const Before& before,
                   const Pass& pass) const {
  const int all = rows_[name].wanted;
  const int instances = std::min(instances_of(group), pass.of);
  const int passes_left = pass.of - pass.number + 1;
  const int instances_left = std::clamp(instances - before.instances, 1, passes_left);
  const bool is_due = before.instances == 0 || instances_left == passes_left ||
                      (pass.number - 1) * instances >= before.instances * pass.of;
  const int open = all - before.repetitions;
  return before.repetitions +
         (is_due && open > 0 ? (open + instances_left - 1) / instances_left : 0);
}

void Passes::visit(const Group& group, const Pass& pass) {
  std::map<std::string, Before> before;
  for (const std::string& name : group) {
    const Record& record = rows_[name].record;
    before[name] = {.repetitions = static_cast<int>(record.repetitions.size()),
                    .instances = record.instances};
  }
  // Once for the whole visit: what its turns teach of costs is for the next pass.
  std::map<std::string, int> targets;
  for (const std::string& name : group) {
    targets[name] = closed_.contains(name) ? 0 : wanted(group, name, before[name], pass);
  }
  const auto now = [&](const std::string& name) { return targets.at(name); };
  Group due = group;
  std::erase_if(due,
                [&](const std::string& name) { return now(name) <= before[name].repetitions; });
  double seconds = 0;
  for (const std::string& name : due) {
    const RowCosts& costs = sampler_.costs(name);
    seconds += costs.making.value_or(0) + costs.repetition;
  }
  if (due.empty() || seconds > left()) {
    return;
  }
  take(due, now);
  for (const std::string& name : due) {
    if (std::ssize(rows_[name].record.repetitions) == before[name].repetitions) {
      closed_.insert(name);
    }
  }
}

void Passes::take(const Group& group, const std::function<int(const std::string& name)>& wanted) {
  std::map<std::string, double> begun;
  std::map<std::string, double> sums;
  std::map<std::string, std::size_t> taken;
  for (const std::string& name : group) {
    taken[name] = rows_[name].record.repetitions.size();
  }
  std::string last;
  const auto note = [&] {  // the turn of `last` is over
    if (!last.empty()) {
      const double seconds = spent_.all() - begun[last];
      sums[last] += seconds;
      const auto [at, is_new] = took_.try_emplace(last, seconds, seconds);
      at->second.second = is_new ? seconds : std::min(at->second.second, seconds);
    }
  };
  const auto has_time = [&](const std::string& name) {
    note();
    const auto before = took_.find(name);
    const bool is_next = sums.contains(name);
    const bool goes_on =
        !is_next ||
        before->second.second <= left() + tolerated / 2 * options_.budget_seconds.value_or(0);
    last = goes_on ? name : "";
    begun[name] = spent_.all();
    return goes_on;
  };
  take_turns(group, rows_, sampler_, wanted, has_time, options_.shuffled ? &random_ : nullptr);
  note();
  for (const auto& [name, seconds] : sums) {
    if (taken[name] == 0) {
      const Row& row = rows_[name];
      const int later = row.wanted - static_cast<int>(row.record.repetitions.size());
      auto& [took, guess] = experience_[kind_of(row)];
      took += seconds;
      guess += guessed(name) - std::max(0, later) * row.expected.repetition;
    }
  }
}

std::vector<PlannedRow> Passes::measure_rows(const std::vector<PlannedRow>& plan) {
  constexpr double of_ceilings = 1.0 / 3;
  if (plan.empty()) {
    return {};
  }
  Pass pass{.number = 1, .of = 1};
  std::map<std::string, double> shares;  // of the budget, before which it must end
  for (const PlannedRow& planned : plan) {
    Row& row = rows_[planned.name];
    row.wanted = few_repetitions(planned.name);
    pass.of = std::max(pass.of, std::min(row.wanted, options_.most_passes));
    shares[planned.name] = planned.pass == pass_of_ceilings ? of_ceilings : 1 + tolerated;
  }
  std::vector<Group> groups = turns(plan, rows_, options_.together);
  for (; pass.number <= pass.of; ++pass.number) {
    sampler_.begin_pass(pass.number, pass.of);
    if (options_.shuffled) {
      std::shuffle(groups.begin(), groups.end(), random_);
    }
    std::erase_if(groups, [&](const Group& group) {
      const bool is_open = pass.number > 1 || admits(group, shares.at(group.front()));
      if (is_open) {
        visit(group, pass);
      }
      return !is_open || std::all_of(group.begin(), group.end(), [&](const std::string& name) {
        const Record& record = rows_[name].record;
        return record.outcome != Outcome::measured || closed_.contains(name) ||
               std::ssize(record.repetitions) >= rows_[name].wanted;
      });
    });
    if (groups.empty()) {
      break;
    }
  }
  // Also of a group that had its turns: one that was put back may have had none.
  std::vector<PlannedRow> later;
  std::copy_if(plan.begin(), plan.end(), std::back_inserter(later),
               [&](const auto& planned) { return !rows_[planned.name].record.has_had_a_turn(); });
  return later;
}

int Passes::repetitions_again(const std::string& name) const {
  const Record& record = rows_[name].record;
  return record.outcome != Outcome::measured || closed_.contains(name) || disturbed_are_done_
             ? 0
             : std::min(record.disturbed_repetitions(), few_repetitions(name));
}

double Passes::seconds_again(const std::string& name) const {
  const int repetitions = repetitions_again(name);
  const RowCosts& costs = sampler_.costs(name);
  return repetitions == 0
             ? 0
             : costs.making.value_or(costs.first_making) + repetitions * costs.repetition;
}

double Passes::most_seconds_again() const { return options_.share_again * spent_.all(); }

void Passes::repeat_disturbed(const std::vector<PlannedRow>& plan) {
  std::vector<PlannedRow> disturbed;
  std::copy_if(plan.begin(), plan.end(), std::back_inserter(disturbed),
               [&](const PlannedRow& planned) { return repetitions_again(planned.name) > 0; });
  if (disturbed.empty() || !options_.is_quiet()) {
    disturbed_are_done_ = true;
    return;
  }
  std::stable_sort(disturbed.begin(), disturbed.end(),
                   [&](const PlannedRow& one, const PlannedRow& two) {
                     return family_in(rows_[one.name]).worth < family_in(rows_[two.name]).worth;
                   });
  double open = options_.budget_seconds ? left() : most_seconds_again();
  std::vector<Group> groups;
  std::size_t count = 0;
  for (const Group& group : turns(disturbed, rows_, options_.together)) {
    const double seconds = std::accumulate(
        group.begin(), group.end(), 0.0,
        [&](double sum, const std::string& name) { return sum + seconds_again(name); });
    if (seconds <= open) {
      open -= seconds;
      count += group.size();
      groups.push_back(group);
    }
  }
  const std::size_t others = disturbed.size() - count;
  if (groups.empty()) {
    disturbed_are_done_ = true;
    say(std::to_string(others) + (others == 1 ? " row stays" : " rows stay") +
        " as other programs disturbed them: there is no time to measure them again");
    return;
  }
  say(std::to_string(count) + (count == 1 ? " row is" : " rows are") +
      " measured again, which other programs disturbed" +
      (others == 0 ? ""
                   : "; " + std::to_string(others) + " more stay as they are, for lack of time"));
  sampler_.renew_workers();
  for (const Group& group : groups) {
    for (const std::string& name : group) {
      rows_[name].wanted =
          static_cast<int>(rows_[name].record.repetitions.size()) + repetitions_again(name);
    }
  }
  disturbed_are_done_ = true;  // what is wanted of them says the rest
  for (const Group& group : groups) {
    take(group, [&](const std::string& name) { return rows_[name].wanted; });
  }
}

/// Each at most a few times as many as the sweep's.
void Passes::repeat_noisiest() {
  constexpr int most = 3;
  for (;;) {
    std::string noisiest;
    double noise = 0;
    int more = 0;
    for (const auto& [name, seconds] : took_) {
      const Record& record = rows_[name].record;
      const int taken = static_cast<int>(record.repetitions.size());
      const int own = repetitions_of(rows_[name], options_.repetitions);
      const auto& [first, next] = seconds;
      const int fitting = static_cast<int>(std::min(1e6, (left() - first) / next + 1));
      const int possible = std::min({own, most * own - taken, fitting});
      const bool can_be_had =
          record.outcome == Outcome::measured && rows_[name].device->failure.empty();
      if (!can_be_had || taken < 2 || first > left() || possible < 1) {
        continue;
      }
      const double own_noise = variation(record.seconds()) / std::sqrt(taken);
      if (own_noise > noise) {
        noisiest = name;
        noise = own_noise;
        more = possible;
      }
    }
    if (noisiest.empty()) {
      return;
    }
    const std::size_t before = rows_[noisiest].record.repetitions.size();
    const int wanted = static_cast<int>(before) + more;
    take({noisiest}, [&](const std::string& /*name*/) { return wanted; });
    if (rows_[noisiest].record.repetitions.size() == before) {  // for it no memory is left, say
      took_.erase(noisiest);
    }
  }
}

/// Few where not all of them fit.
void Passes::choose_repetitions(const std::vector<PlannedRow>& plan) {
  double sum = 0;
  for (const PlannedRow& planned : plan) {
    planned_[planned.name] = planned.seconds;
    sum += planned.seconds;
  }
  constexpr double generous = 0.8;
  constexpr int few = 5;  // the fewest that readers take a verdict from
  if (sum >= generous * left()) {
    most_at_first_ = few;
  }
}

void Passes::measure(const std::vector<PlannedRow>& plan, bool has_networks,
                     const std::function<void(double seconds)>& look_closer) {
  choose_repetitions(plan);
  // What the question needs, in its order, and what does not fit now again beside the others.
  std::vector<PlannedRow> first;
  std::vector<PlannedRow> others;
  for (const char* pass : {pass_of_ladder, pass_of_ceilings, pass_of_networks}) {
    std::copy_if(plan.begin(), plan.end(), std::back_inserter(first),
                 [&](const PlannedRow& row) { return row.pass == pass; });
  }
  std::copy_if(plan.begin(), plan.end(), std::back_inserter(others), [&](const PlannedRow& row) {
    return std::none_of(first.begin(), first.end(),
                        [&](const PlannedRow& one) { return one.name == row.name; });
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
  for (const PlannedRow& row : measure_rows(open)) {
    left_open_.push_back(row.name);
  }
  if (!has_networks) {
    closer();
  }
  std::vector<PlannedRow> again;
  for (const std::string& name : sampler_.to_try_again()) {
    if (admits({name}, 1 + tolerated)) {
      again.push_back({.name = name, .pass = "again"});
      sampler_.begin_anew(name);
      closed_.erase(name);
    }
  }
  measure_rows(again);
  repeat_disturbed(plan);
  if (options_.budget_seconds) {
    repeat_noisiest();
  }
}

// ---- turns

namespace {

/// What is computed, however and wherever.
std::string work_of(const Row& row) {
  Configuration work;
  std::copy_if(row.configuration.begin(), row.configuration.end(), std::back_inserter(work),
               [](const auto& pair) { return find_axis(pair.first).role == AxisRole::what; });
  return row_name(work);
}

bool share_a_device(const std::vector<std::string>& names, Rows& rows) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return rows[name].device == rows[names.front()].device;
  });
}

}  // namespace

int repetitions_of(const Row& row, int of_sweep) {
  return row.repetitions > 0 ? row.repetitions : of_sweep;
}

std::vector<std::vector<std::string>> turns(const std::vector<PlannedRow>& plan, Rows& rows,
                                            Together together) {
  std::vector<std::vector<std::string>> groups;
  std::string work;
  for (const PlannedRow& planned : plan) {
    const std::string own = work_of(rows[planned.name]);
    if (groups.empty() || own != work) {
      groups.emplace_back();
      work = own;
    }
    groups.back().push_back(planned.name);
  }
  std::vector<std::vector<std::string>> found;
  for (const std::vector<std::string>& group : groups) {
    if (together == Together::all || !share_a_device(group, rows)) {
      found.push_back(group);
      continue;
    }
    for (const std::string& name : group) {
      found.push_back({name});
    }
  }
  return found;
}

void take_turns(const std::vector<std::string>& names, Rows& rows, Sampler& sampler,
                const std::function<int(const std::string& name)>& wanted,
                const std::function<bool(const std::string& name)>& has_time,
                std::mt19937* random) {
  std::vector<std::string> later;
  std::map<std::string, std::size_t> before;
  for (const std::string& name : names) {
    before[name] = rows[name].record.repetitions.size();
  }
  for (std::vector<std::string> left = names; !left.empty();) {
    if (random != nullptr) {
      std::shuffle(left.begin(), left.end(), *random);
    }
    std::erase_if(left, [&](const std::string& name) {
      const Record& record = rows[name].record;
      const auto taken = [&] { return static_cast<int>(record.repetitions.size()); };
      if (taken() >= wanted(name) || !has_time(name)) {
        return true;
      }
      if (sampler.repeat(name)) {
        return taken() >= wanted(name);
      }
      if (record.out_of_memory && names.size() > 1 && record.repetitions.size() == before[name]) {
        sampler.put_back(name);
        later.push_back(name);
      }
      return true;
    });
  }
  for (const std::string& name : names) {
    sampler.finish(name);
  }
  for (const std::string& name : later) {
    take_turns({name}, rows, sampler, wanted, has_time);
  }
}

}  // namespace crossover::bench
