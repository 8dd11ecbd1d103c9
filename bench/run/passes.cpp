// SPDX-License-Identifier: Apache-2.0
#include "run/passes.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "file/standard_runs.h"

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

/// By what rows of the same kind took, once there are some.
double Passes::expected(const Group& group) const {
  double sum = 0;
  for (const std::string& name : group) {
    const double guess = guessed(name);
    const auto known = experience_.find(kind_of(rows_[name]));
    constexpr double weight = 0.5;  // seconds that count for the guess
    sum += known == experience_.end()
               ? guess
               : guess * (known->second.first + weight) / (known->second.second + weight);
  }
  return sum;
}

bool Passes::admits(const Group& group, double share) const {
  if (!options_.budget_seconds) {
    return true;
  }
  const double seconds = expected(group);
  const double budget = *options_.budget_seconds;
  // Should it take longer than expected, it still ends in time.
  return seconds <= left() && doubt * seconds <= left() + tolerated * budget &&
         spent_.all() + seconds <= share * budget;
}

void Passes::take(const Group& group, const std::function<int(const std::string& name)>& wanted) {
  std::map<std::string, double> begun;
  std::map<std::string, double> sums;
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
    auto& [took, guess] = experience_[kind_of(rows_[name])];
    took += seconds;
    guess += guessed(name);
  }
}

std::vector<PlannedRow> Passes::measure_pass(const std::vector<PlannedRow>& pass, double share) {
  std::vector<Group> groups = turns(pass, rows_, options_.together);
  if (options_.shuffled) {
    std::shuffle(groups.begin(), groups.end(), random_);
  }
  for (const Group& group : groups) {
    if (admits(group, share)) {
      take(group, [&](const std::string& name) { return few_repetitions(name); });
    }
  }
  // Also of a group that had its turns: one that was put back may have had none.
  std::vector<PlannedRow> later;
  std::copy_if(pass.begin(), pass.end(), std::back_inserter(later),
               [&](const auto& planned) { return !rows_[planned.name].record.has_had_a_turn(); });
  return later;
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
  double of_networks = 0;
  for (const PlannedRow& planned : plan) {
    planned_[planned.name] = planned.seconds;
    sum += planned.seconds;
    of_networks +=
        planned.pass == pass_of_ladder || planned.pass == pass_of_networks ? planned.seconds : 0;
  }
  constexpr double generous = 0.8;
  constexpr double ample = 0.5;
  constexpr int few = 5;
  constexpr int fewest = 3;
  if (sum >= generous * left()) {
    most_at_first_ = of_networks < ample * left() ? few : fewest;
  }
}

void Passes::measure(const std::vector<PlannedRow>& plan, bool has_networks,
                     const std::function<void(double seconds)>& look_closer) {
  choose_repetitions(plan);
  std::vector<PlannedRow> ladder;
  std::vector<PlannedRow> ceilings;
  std::vector<PlannedRow> networks;
  std::vector<PlannedRow> others;
  for (const PlannedRow& row : plan) {
    (row.pass == pass_of_ladder     ? ladder
     : row.pass == pass_of_ceilings ? ceilings
     : row.pass == pass_of_networks ? networks
                                    : others)
        .push_back(row);
  }
  constexpr double of_ceilings = 1.0 / 3;
  constexpr double all = 1 + tolerated;
  std::vector<PlannedRow> open;
  const auto measure_or_leave = [&](const std::vector<PlannedRow>& pass, double share) {
    const std::vector<PlannedRow> later = measure_pass(pass, share);
    open.insert(open.end(), later.begin(), later.end());
  };
  const auto closer = [&] {
    if (look_closer && left() > 0) {
      look_closer(left() / 2);
    }
  };
  measure_or_leave(ladder, all);
  measure_or_leave(ceilings, of_ceilings);
  measure_or_leave(networks, all);
  if (has_networks) {
    closer();
  }
  open.insert(open.end(), others.begin(), others.end());
  for (const PlannedRow& row : measure_pass(open, all)) {
    left_open_.push_back(row.name);
  }
  if (!has_networks) {
    closer();
  }
  for (const std::string& name : sampler_.to_try_again()) {
    if (admits({name}, all)) {
      sampler_.begin_anew(name);
      take({name}, [&](const std::string& again) { return few_repetitions(again); });
    }
  }
  if (options_.budget_seconds) {
    repeat_noisiest();
  }
}

}  // namespace crossover::bench
