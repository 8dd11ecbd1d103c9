// SPDX-License-Identifier: Apache-2.0
#include "run/schedule.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "axes/axes.h"
#include "axes/flag.h"
#include "base/say.h"

namespace crossover::bench {

namespace {

/// "1 row is", "2 rows are".
std::string number_of_rows(std::size_t rows, const std::string& one, const std::string& several) {
  return std::to_string(rows) + (rows == 1 ? " row " + one : " rows " + several);
}

/// The names of the plan's rows, which know from here on what they are planned to take.
std::vector<std::string> planned_in(Rows& rows, const std::vector<PlannedRow>& plan) {
  for (const PlannedRow& planned : plan) {
    rows[planned.name].turns.planned = planned.seconds;
  }
  return names_of(plan);
}

/// What the question needs, in its order.
bool is_of_the_question(const PlannedRow& row) {
  return row.pass == pass_of_answer || row.pass == pass_of_ladder || row.pass == pass_of_ceilings ||
         row.pass == pass_of_networks;
}

}  // namespace

bool has_networks(const std::vector<PlannedRow>& plan) {
  return std::ranges::any_of(plan, [](const PlannedRow& planned) {
    return planned.pass == pass_of_networks || planned.pass == pass_of_answer;
  });
}

Schedule::Schedule(ScheduleOptions options, const Spent& spent, Rows& rows,
                   std::vector<PlannedRow> plan, bool has_networks)
    : options_(std::move(options)),
      spent_(spent),
      rows_(rows),
      has_networks_(has_networks),
      estimates_(options_.limits, spent, rows, planned_in(rows, plan)) {
  std::ranges::partition_copy(plan, std::back_inserter(question_), std::back_inserter(others_),
                              is_of_the_question);
}

std::optional<SweepStep> Schedule::next() {
  look_back();
  while (stage_ != Stage::end) {
    if (!steps_.empty()) {
      SweepStep step = std::move(steps_.front());
      steps_.pop_front();
      return step;
    }
    std::optional<SweepStep> step =
        stage_ == Stage::noisiest ? next_of_noisiest() : next_of_passes();
    if (step) {
      return step;
    }
    begin(static_cast<Stage>(static_cast<int>(stage_) + 1));
  }
  return {};
}

void Schedule::begin(Stage stage) {
  stage_ = stage;
  passes_ = {};
  closer_ends_ = closer_ends_ ? std::optional(0.0) : std::nullopt;
  switch (stage) {
    case Stage::begin:
    case Stage::end:
      break;
    case Stage::answer:
      if (options_.answer_seconds) {
        begin_answer();
      }
      break;
    case Stage::tell:
      if (is_answered()) {
        steps_.emplace_back(TellAnswer());
      }
      break;
    case Stage::question:
      if (!is_spread()) {
        begin_passes(question_);
      }
      break;
    case Stage::look_behind_it:
      if (has_networks_) {
        look_closer();
      }
      break;
    case Stage::others: {  // beside them what did not fit before
      std::vector<PlannedRow> open = is_spread() ? question_ : without_a_turn(question_);
      open.insert(open.end(), others_.begin(), others_.end());
      begin_passes(open);
      break;
    }
    case Stage::look_behind_all:
      if (!has_networks_) {
        look_closer();
      }
      break;
    case Stage::second_tries:
      begin_second_tries();
      break;
    case Stage::disturbed:
      begin_disturbed();
      break;
    case Stage::noisiest:
      break;
  }
}

void Schedule::begin_answer() {
  std::vector<PlannedRow> rows;
  std::ranges::copy_if(question_, std::back_inserter(rows),
                       [](const PlannedRow& row) { return row.pass == pass_of_answer; });
  begin_passes(rows);
  passes_.of = 1;
  passes_.most = fewest_repetitions;
}

/// Whether the question's rows, once they have answered, go through the passes of all.
bool Schedule::is_spread() const { return options_.answer_seconds && !has_networks_; }

/// Of two networks at least.
bool Schedule::is_answered() const {
  std::set<std::string> networks;
  for (const PlannedRow& planned : question_) {
    const Row& row = rows_[planned.name];
    if (planned.pass == pass_of_answer && !row.record.repetitions.empty()) {
      networks.insert(work_of(row));
    }
  }
  return options_.answer_seconds && networks.size() > 1;
}

void Schedule::look_closer() {
  closer_ends_ = spent_.all() + options_.closer_seconds;
  if (estimates_.left() > 0) {
    steps_.emplace_back(LookCloser{estimates_.left() / 2});
  }
}

double Schedule::seconds_left() const {
  return estimates_.left_of_all(closer_left(), are_disturbed_done_);
}

double Schedule::closer_left() const {
  return closer_ends_ ? std::max(0.0, *closer_ends_ - spent_.all()) : options_.closer_seconds;
}

std::vector<std::string> Schedule::left_open() const {
  std::vector<std::string> open = names_of(without_a_turn(question_));
  std::ranges::move(names_of(without_a_turn(others_)), std::back_inserter(open));
  std::erase_if(open, [&](const std::string& name) { return estimates_.has_a_share(name); });
  return open;
}

// ---- Passes

std::vector<Group> Schedule::groups_of(const std::vector<PlannedRow>& plan) const {
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
      for (const std::string& name : group) {
        const std::string& lead = rows_[name].lead;
        const bool is_beside = !lead.empty() && !groups.empty() && contains(groups.back(), lead);
        (is_beside ? groups.back() : groups.emplace_back()).push_back(name);
      }
    }
  }
  return groups;
}

/// Also of a group that had its turns: one that was put back may have had none.
std::vector<PlannedRow> Schedule::without_a_turn(const std::vector<PlannedRow>& plan) const {
  std::vector<PlannedRow> open;
  std::ranges::copy_if(plan, std::back_inserter(open), [&](const PlannedRow& planned) {
    return !rows_[planned.name].record.has_had_a_turn();
  });
  return open;
}

void Schedule::begin_passes(const std::vector<PlannedRow>& plan) {
  passes_ = {.groups = groups_of(plan)};
  passes_.place = passes_.groups.size();  // of no pass yet
  for (const PlannedRow& planned : plan) {
    Turns& turns = rows_[planned.name].turns;
    turns.wanted = estimates_.repetitions_at_first(planned.name);
    passes_.of = std::max(passes_.of, std::min(turns.wanted, options_.limits.most_passes));
  }
}

std::optional<SweepStep> Schedule::next_of_passes() {
  for (Passes& all = passes_;;) {
    if (all.place == all.groups.size()) {
      if (all.number > 0) {
        all.groups = std::exchange(all.unfinished, {});
      }
      if (all.groups.empty() || all.number == all.of) {
        return {};
      }
      all.place = 0;
      ++all.number;
      if (options_.shuffled) {
        std::ranges::shuffle(all.groups, random_);
      }
      return BeginPass{.words = stage_ == Stage::answer ? "first answer"
                                : all.of == 1           ? ""
                                              : "pass " + std::to_string(all.number) + " of " +
                                                    std::to_string(all.of),
                       .is_first = all.number == 1};
    }
    Group group = all.groups[all.place++];
    if (all.number == 1) {
      take_out_late(group);
    }
    Targets due;
    Group names;
    for (const std::string& name : group) {
      const int wanted = rows_[name].turns.is_closed ? 0 : target(group, name);
      const bool is_in_time =
          !estimates_.has_a_share(name) || estimates_.share_lasts(name, closer_left());
      if (wanted > estimates_.taken(name) && is_in_time) {
        due.emplace_back(name, wanted);
        names.push_back(name);
      }
    }
    if (!due.empty() && estimates_.next_turns(names) <= estimates_.left()) {
      visited_ = group;
      std::ranges::transform(names, std::back_inserter(before_), [&](const std::string& name) {
        return std::pair(name, estimates_.taken(name));
      });
      return TakeTurns{std::move(due)};
    }
    keep_if_unfinished(group);
  }
}

void Schedule::take_out_late(Group& group) {
  Group ours;
  Group theirs;
  std::ranges::partition_copy(
      group, std::back_inserter(theirs), std::back_inserter(ours),
      [&](const std::string& name) { return estimates_.has_a_share(name); });
  if (!ours.empty() && !has_begun(ours) && !admits(ours)) {
    group.clear();
    return;
  }
  const Group& open = has_begun(ours) ? theirs : group;
  if (theirs.empty() || has_begun(theirs) || (admits(open) && share_admits(theirs))) {
    return;
  }
  if (stage_ != Stage::answer) {
    for (const std::string& name : theirs) {
      rows_[name].turns.is_left_out = true;
    }
  }
  group = std::move(ours);
}

/// Of the time until the first answer they have a part that leaves ours their own.
bool Schedule::share_admits(const Group& theirs) {
  constexpr double of_answer = 1.0 / 3;
  if (stage_ == Stage::answer &&
      estimates_.taken_by_others() + estimates_.expected(theirs, passes_.most) >
          of_answer * *options_.answer_seconds) {
    return false;
  }
  return estimates_.share_admits(theirs, closer_left());
}

/// In this run, with repetitions: what is left of it is promised.
bool Schedule::has_begun(const Group& group) const {
  return std::ranges::all_of(group, [&](const std::string& name) {
    return rows_[name].turns.first && !rows_[name].record.repetitions.empty();
  });
}

bool Schedule::admits(const Group& group) {
  if (stage_ == Stage::answer &&
      spent_.all() + estimates_.expected(group, passes_.most) > *options_.answer_seconds) {
    return false;
  }
  constexpr double of_ceilings = 1.0 / 3;  // of the budget that is left, before which they must end
  double end = (1 + tolerated_share_of_budget) * estimates_.budget();
  if (family_of(rows_[group.front()].spec).bounds_others) {
    ceilings_end_ = ceilings_end_.value_or(spent_.all() + of_ceilings * estimates_.left());
    end = *ceilings_end_;
  }
  return estimates_.admits(group, end);
}

/// Instances are spread over the passes, repetitions over the instances.
int Schedule::target(const Group& group, const std::string& name) const {
  const Passes& pass = passes_;
  const int made = rows_[name].record.instances;
  Group paired;
  std::ranges::copy_if(group, std::back_inserter(paired), [&](const std::string& other) {
    return estimates_.has_a_share(other) == estimates_.has_a_share(name);
  });
  const int instances = std::min(estimates_.instances_of(paired), pass.of);
  const int passes_left = pass.of - pass.number + 1;
  const int instances_left = std::clamp(instances - made, 1, passes_left);
  const bool is_due =
      made == 0 || instances_left == passes_left || (pass.number - 1) * instances >= made * pass.of;
  const int taken = estimates_.taken(name);
  const int open = std::min(rows_[name].turns.wanted, pass.most) - taken;
  return taken + (is_due && open > 0 ? (open + instances_left - 1) / instances_left : 0);
}

void Schedule::keep_if_unfinished(const Group& group) {
  const bool is_finished = std::ranges::all_of(group, [&](const std::string& name) {
    const Turns& turns = rows_[name].turns;
    return !estimates_.is_measured(name) || turns.is_closed ||
           estimates_.taken(name) >= turns.wanted;
  });
  if (!is_finished) {
    passes_.unfinished.push_back(group);
  }
}

void Schedule::look_back() {
  for (const auto& [name, repetitions] : std::exchange(before_, {})) {
    rows_[name].turns.is_closed = estimates_.taken(name) == repetitions;
  }
  if (const Group group = std::exchange(visited_, {}); !group.empty()) {
    keep_if_unfinished(group);
  }
}

void Schedule::order_round(Targets& targets) {
  if (options_.shuffled) {
    std::ranges::shuffle(targets, random_);
  }
}

// ---- More repetitions

/// Of rows on a GPU that ended their worker, now that no other row can be lost by it.
void Schedule::begin_second_tries() {
  std::vector<PlannedRow> again;
  for (const std::string& name : estimates_.names()) {
    const Row& row = rows_[name];
    if (row.record.ended_worker && row.device->has_own_memory() && row.device->failure.empty() &&
        estimates_.admits({name}, (1 + tolerated_share_of_budget) * estimates_.budget())) {
      rows_[name].turns.is_closed = false;
      again.push_back({.name = name, .pass = "again"});
      steps_.emplace_back(TryAgain{name});
    }
  }
  begin_passes(again);
}

/// Rows with repetitions that other programs disturbed get as many more, where these have ended,
/// those that are worth most first.
void Schedule::begin_disturbed() {
  std::vector<PlannedRow> disturbed;
  for (const std::string& name : estimates_.names()) {
    if (estimates_.repetitions_again(name) > 0) {
      disturbed.push_back({.name = name, .pass = "disturbed"});
    }
  }
  are_disturbed_done_ = true;  // what is wanted of them says the rest
  if (disturbed.empty() || !options_.is_quiet()) {
    return;
  }
  std::ranges::stable_sort(
      disturbed, {}, [&](const PlannedRow& one) { return family_of(rows_[one.name].spec).worth; });
  double open = estimates_.most_again();
  std::size_t count = 0;
  for (const Group& group : groups_of(disturbed)) {
    const double seconds = estimates_.again(group);
    if (seconds > open) {
      continue;
    }
    open -= seconds;
    count += group.size();
    Targets targets;
    for (const std::string& name : group) {
      Turns& turns = rows_[name].turns;
      turns.wanted = estimates_.taken(name) + estimates_.repetitions_again(name);
      targets.emplace_back(name, turns.wanted);
    }
    steps_.emplace_back(TakeTurns{std::move(targets)});
  }
  const std::size_t others = disturbed.size() - count;
  if (count == 0) {
    say(number_of_rows(others, "stays", "stay") +
        " as other programs disturbed them: there is no time to measure them again");
    return;
  }
  say(number_of_rows(count, "is", "are") + " measured again, which other programs disturbed" +
      (others == 0 ? ""
                   : "; " + std::to_string(others) + " more stay as they are, for lack of time"));
  steps_.emplace_front(RenewWorkers());
}

/// Within a budget, each at most a few times as many as the sweep's.
std::optional<SweepStep> Schedule::next_of_noisiest() {
  constexpr int most = 3;
  std::string noisiest;
  double noise = 0;
  int wanted = 0;
  for (const std::string& name : estimates_.names()) {
    const Row& row = rows_[name];
    const Turns& turns = row.turns;
    const int taken = estimates_.taken(name);
    if (!options_.limits.budget_seconds || !turns.first || turns.is_closed || taken < 2 ||
        !estimates_.is_measured(name) || !row.device->failure.empty() || is_of_a_peer(row) ||
        *turns.first > estimates_.left()) {
      continue;
    }
    const int own = repetitions_of(row, options_.limits.repetitions);
    const int fitting =
        static_cast<int>(std::min(1e6, (estimates_.left() - *turns.first) / turns.least + 1));
    const int possible = std::min({own, most * own - taken, fitting});
    const double own_noise = variation(row.record.seconds()) / std::sqrt(taken);
    if (possible >= 1 && own_noise > noise) {
      noisiest = name;
      noise = own_noise;
      wanted = taken + possible;
    }
  }
  if (noisiest.empty()) {
    return {};
  }
  before_ = {{noisiest, estimates_.taken(noisiest)}};  // that has no more is closed
  return TakeTurns{{{noisiest, wanted}}};
}

}  // namespace crossover::bench
