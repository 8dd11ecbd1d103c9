// SPDX-License-Identifier: Apache-2.0
#include "run/budget.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <set>

#include "file/standard_runs.h"
#include "run/turns.h"

namespace crossover::bench {
namespace {

/// How far from its budget a run may end, as a share of it.
constexpr double tolerated = 0.05;
/// What is known of a row before it is measured may be wrong by this factor.
constexpr double doubt = 2;

constexpr const char* ceilings = "ceilings";
constexpr const char* ladder = "networks";

/// Rows of one kind are misjudged alike.
std::string kind_of(const Row& row) {
  return row.configuration.front().second + (row.device->is_host ? " cpu" : " gpu");
}

/// Whether the row is one of those that the crossover is made of: on the CPU by one thread and by
/// all of them, on a GPU with the data there.
bool is_of_the_ladder(const Row& row, const std::set<int>& threads) {
  if (row.configuration.front().second != "Epoch" ||
      value_or_unsaid(row.configuration, "precision") != "f32") {
    return false;
  }
  if (!row.device->is_host) {
    return value_or_unsaid(row.configuration, "data") == "resident";
  }
  const int own = std::stoi(value_or_unsaid(row.configuration, "cpu_threads"));
  return own == *threads.begin() || own == *threads.rbegin();
}

/// 0 and 4, then 2, then 1 and 3: each step halves the widest gap, so that a ladder that ends early
/// has its ends and even rungs.
std::vector<std::size_t> halving(std::size_t count) {
  std::vector<std::size_t> order;
  if (count > 0) {
    order.push_back(0);
  }
  if (count > 1) {
    order.push_back(count - 1);
  }
  std::deque<std::pair<std::size_t, std::size_t>> gaps{{0, count > 0 ? count - 1 : 0}};
  for (; !gaps.empty(); gaps.pop_front()) {
    const auto [low, high] = gaps.front();
    const std::size_t middle = (low + high) / 2;
    if (middle > low) {
      order.push_back(middle);
      gaps.emplace_back(low, middle);
      gaps.emplace_back(middle, high);
    }
  }
  return order;
}

/// The ladder's networks and batches in that order; rows of one stay together.
std::vector<PlannedRow> spread(const std::vector<PlannedRow>& rungs, Rows& rows) {
  std::vector<std::vector<PlannedRow>> by_work;
  std::map<std::string, std::size_t> places;
  for (const PlannedRow& planned : rungs) {
    const Row& row = rows[planned.name];
    const std::string work = value_or_unsaid(row.configuration, "model") + "/" +
                             value_or_unsaid(row.configuration, "batch");
    const auto [place, is_new] = places.emplace(work, by_work.size());
    if (is_new) {
      by_work.emplace_back();
    }
    by_work[place->second].push_back(planned);
  }
  std::vector<PlannedRow> ordered;
  for (const std::size_t place : halving(by_work.size())) {
    ordered.insert(ordered.end(), by_work[place].begin(), by_work[place].end());
  }
  return ordered;
}

}  // namespace

std::vector<PlannedRow> by_question(const std::vector<PlannedRow>& plan, Rows& rows) {
  std::set<int> threads;
  for (const PlannedRow& planned : plan) {
    const std::string own = value_or_unsaid(rows[planned.name].configuration, "cpu_threads");
    if (!own.empty()) {
      threads.insert(std::stoi(own));
    }
  }
  std::vector<PlannedRow> first;
  std::vector<PlannedRow> rungs;
  std::vector<PlannedRow> others;
  for (PlannedRow planned : plan) {
    const Row& row = rows[planned.name];
    planned.pass = row.configuration.front().second;
    if (planned.pass == "Peak") {
      planned.pass = ceilings;
      first.push_back(planned);
    } else if (is_of_the_ladder(row, threads)) {
      planned.pass = ladder;
      rungs.push_back(planned);
    } else {
      others.push_back(planned);
    }
  }
  std::stable_sort(others.begin(), others.end(), [](const PlannedRow& a, const PlannedRow& b) {
    return worth_rank(a.pass) < worth_rank(b.pass);
  });
  std::vector<PlannedRow> sorted = std::move(first);
  for (const std::vector<PlannedRow>& part : {spread(rungs, rows), others}) {
    sorted.insert(sorted.end(), part.begin(), part.end());
  }
  expect(sorted, rows);
  return sorted;
}

bool has_networks(const std::vector<PlannedRow>& plan) {
  return std::any_of(plan.begin(), plan.end(),
                     [](const PlannedRow& planned) { return planned.pass == ladder; });
}

int Budget::few_repetitions(const std::string& name) const {
  return std::min(repetitions_of(rows_[name], repetitions_), most_at_first_);
}

double Budget::guessed(const std::string& name) const {
  const Row& row = rows_[name];
  const int spared = repetitions_of(row, repetitions_) - few_repetitions(name);
  return planned_.at(name) - spared * row.expected.repetition;
}

/// By what rows of the same kind took, once there are some.
double Budget::expected(const Group& group) const {
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

/// Should it take longer than expected, it still ends in time.
bool Budget::fits(double expected_seconds) const {
  return expected_seconds <= left() && doubt * expected_seconds <= left() + tolerated * seconds_;
}

void Budget::take(const Group& group, const std::function<int(const std::string& name)>& wanted) {
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
  take_turns(group, rows_, sampler_, wanted, [&](const std::string& name) {
    note();
    const auto before = took_.find(name);
    const bool is_next = sums.contains(name);
    const bool goes_on = !is_next || before->second.second <= left() + tolerated / 2 * seconds_;
    last = goes_on ? name : "";
    begun[name] = spent_.all();
    return goes_on;
  });
  note();
  for (const auto& [name, seconds] : sums) {
    auto& [took, guess] = experience_[kind_of(rows_[name])];
    took += seconds;
    guess += guessed(name);
  }
}

std::vector<PlannedRow> Budget::measure_pass(const std::vector<PlannedRow>& pass, double share) {
  const double until = share * seconds_;
  std::vector<PlannedRow> later;
  for (const Group& group : turns(pass, rows_, false)) {
    const double seconds = expected(group);
    if (fits(seconds) && spent_.all() + seconds <= until) {
      take(group, [&](const std::string& name) { return few_repetitions(name); });
    }
    // Also of a group that had its turns: one that was put back may have had none.
    std::copy_if(pass.begin(), pass.end(), std::back_inserter(later), [&](const auto& planned) {
      return std::find(group.begin(), group.end(), planned.name) != group.end() &&
             !rows_[planned.name].record.has_had_a_turn();
    });
  }
  return later;
}

/// Each at most a few times as many as the sweep's.
void Budget::repeat_noisiest() {
  constexpr int most = 3;
  for (;;) {
    std::string noisiest;
    double noise = 0;
    int more = 0;
    for (const auto& [name, seconds] : took_) {
      const Record& record = rows_[name].record;
      const int taken = static_cast<int>(record.repetitions.size());
      const int own = repetitions_of(rows_[name], repetitions_);
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

void Budget::measure(const std::vector<PlannedRow>& plan, bool has_networks,
                     const std::function<void(double seconds)>& look_closer) {
  double sum = 0;
  double of_ladder = 0;
  for (const PlannedRow& planned : plan) {
    planned_[planned.name] = planned.seconds;
    sum += planned.seconds;
    of_ladder += planned.pass == ladder ? planned.seconds : 0;
  }
  constexpr double generous = 0.8;
  constexpr double ample = 0.5;
  constexpr int few = 5;
  constexpr int fewest = 3;
  most_at_first_ = sum < generous * left()      ? std::numeric_limits<int>::max()
                   : of_ladder < ample * left() ? few
                                                : fewest;
  const auto pass = [&](const auto& wanted) {
    std::vector<PlannedRow> found;
    std::copy_if(plan.begin(), plan.end(), std::back_inserter(found), wanted);
    return found;
  };
  constexpr double of_ceilings = 1.0 / 3;
  constexpr double all = 1 + tolerated;
  std::vector<PlannedRow> open =
      measure_pass(pass([](const auto& row) { return row.pass == ceilings; }), of_ceilings);
  const std::vector<PlannedRow> networks =
      measure_pass(pass([](const auto& row) { return row.pass == ladder; }), all);
  const auto closer = [&] {
    if (look_closer && left() > 0) {
      look_closer(left() / 2);
    }
  };
  if (has_networks) {
    closer();
  }
  open.insert(open.end(), networks.begin(), networks.end());
  const std::vector<PlannedRow> others =
      pass([](const auto& row) { return row.pass != ceilings && row.pass != ladder; });
  open.insert(open.end(), others.begin(), others.end());
  for (const PlannedRow& row : measure_pass(open, all)) {
    left_open_.push_back(row.name);
  }
  if (!has_networks) {
    closer();
  }
  repeat_noisiest();
}

}  // namespace crossover::bench
