// SPDX-License-Identifier: Apache-2.0
#include "automatic.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <exception>
#include <map>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "crossover/alive.h"
#include "crossover/random.h"
#include "crossover/start.h"
#include "crossover/training.h"

namespace crossover {

// ---- Trial

namespace {

constexpr double turn_seconds = 2e-3;  ///< far above a clock's reading and a thread's wake-up
constexpr double most_seconds = 0.2;   ///< of the turns of one Program
constexpr double long_seconds = 0.05;  ///< of the least positions
constexpr double much = 1.3;           ///< more than a first time is longer than a second
constexpr int fewest_turns = 3;        ///< before two that do not overlap are told apart
constexpr int most_turns = 9;

double seconds_of(Program& program, std::int64_t runs, std::int64_t times, const Stopwatch& now) {
  const double start = now();
  for (std::int64_t i = 0; i < times; ++i) {
    program.enqueue(0, runs);
    program.wait();
  }
  return now() - start;
}

bool are_apart(const std::vector<double>& one, const std::vector<double>& other) {
  const auto [least, most] = std::minmax_element(one.begin(), one.end());
  const auto [other_least, other_most] = std::minmax_element(other.begin(), other.end());
  return *most < *other_least || *other_most < *least;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Of each tensor of integers among the data, how many values it may have.
std::map<Id, std::int64_t> counts_of_values(const Workload& workload) {
  std::map<Id, std::int64_t> counts;
  const auto count = [&](Id view, std::int64_t values) {
    const Id source = workload[view].source;
    counts[source == none ? view : source] = values;
  };
  for (const Step& step : workload.steps) {
    for (const Op& op : step.ops) {
      if (const auto* embedding = std::get_if<Embedding>(&op)) {
        count(embedding->tokens, workload[embedding->table].shape.front());
      } else if (const auto* loss = std::get_if<SoftmaxCrossEntropy>(&op)) {
        count(loss->labels, workload[loss->logits].shape.back());
      }
    }
  }
  return counts;
}

}  // namespace

void begin_trial(Program& program, const Workload& workload) {
  restart(program, workload);
  const std::map<Id, std::int64_t> counts = counts_of_values(workload);
  for (const Id id : tensors_of(workload, Role::data)) {
    const auto count = counts.find(id);
    std::vector<double> values(static_cast<std::size_t>(elements(workload[id].shape)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double drawn = uniform(Stream::inputs, i);
      values[i] = is_float(workload[id].type) ? 2 * drawn - 1
                  : count == counts.end()     ? 0
                                          : std::floor(drawn * static_cast<double>(count->second));
    }
    upload(program, workload, id, values);
  }
}

double steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double seconds_of_least(Program& program, const Trials& trials, const Stopwatch& now) {
  const double first = seconds_of(program, trials.least, 1, now);
  return first >= long_seconds ? first : std::max(seconds_of(program, trials.least, 1, now), 1e-9);
}

double ratio_of_seconds(const Contender& first, const Contender& second, const Trials& trials,
                        const Stopwatch& now) {
  const double ratio = second.seconds / first.seconds;
  if (std::min(first.seconds, second.seconds) >= long_seconds &&
      std::max(ratio, 1 / ratio) >= much) {
    return ratio;
  }
  const double slower = std::max(first.seconds, second.seconds);
  const auto fitting = [&](double seconds, std::int64_t most) {
    return static_cast<std::int64_t>(
        std::clamp(std::floor(turn_seconds / seconds), 1.0, static_cast<double>(most)));
  };
  // Both the same: a short batch at the end of the order, or an update there, counts for both.
  constexpr std::int64_t most_times = 1000;
  const std::int64_t fit = fitting(slower, trials.runs / trials.least);
  const std::int64_t at_once = fit * trials.least;
  const std::int64_t times = fitting(slower * static_cast<double>(fit), most_times);
  std::vector<double> of_first;
  std::vector<double> of_second;
  double spent = 0;
  for (int turn = 0; turn < most_turns && (turn == 0 || spent < 2 * most_seconds); ++turn) {
    of_first.push_back(seconds_of(first.program, at_once, times, now));
    of_second.push_back(seconds_of(second.program, at_once, times, now));
    spent += of_first.back() + of_second.back();
    alive();
    if (turn + 1 >= fewest_turns && are_apart(of_first, of_second)) {
      break;
    }
  }
  return median(of_second) / median(of_first);
}

// ---- Automatic

namespace {

/// Whether it can be done; what it throws because the device can't is kept, unless there is one
/// before. All else is wrong, and no reason to choose another way: it leaves.
template <class Attempt>
bool can(const Attempt& attempt, std::exception_ptr& reason) {
  try {
    attempt();
    return true;
  } catch (const Unsupported&) {
    reason = reason ? reason : std::current_exception();
  } catch (const OutOfMemory&) {
    reason = reason ? reason : std::current_exception();
  }
  return false;
}

struct Tried {
  Choice choice;
  double seconds_over_winner = 1;
};

/// Twice as many threads halve the time, or a little more where their caches hold more. Other
/// algorithms of products and convolutions save no more than that margin over what the winner may
/// save by them, too.
bool can_not_win(const Choice& choice, const std::vector<Tried>& tried) {
  constexpr double margin = 1.5;
  return std::any_of(tried.begin(), tried.end(), [&](const Tried& one) {
    return one.choice.execution == choice.execution &&
           one.seconds_over_winner * one.choice.threads > margin * choice.threads;
  });
}

/// Nor can it where the last threads more had made the same execution slower: it waits for them
/// ever longer.
bool has_enough_threads(const Choice& choice, const std::vector<Tried>& tried) {
  constexpr double noise = 1.1;
  std::vector<const Tried*> fewer;
  for (const Tried& one : tried) {
    if (one.choice.execution == choice.execution && one.choice.threads < choice.threads) {
      fewer.push_back(&one);
    }
  }
  std::ranges::sort(fewer, {}, [](const Tried* one) { return one->choice.threads; });
  return fewer.size() > 1 &&
         fewer.back()->seconds_over_winner > noise * fewer[fewer.size() - 2]->seconds_over_winner;
}

/// Of a ratio that is lost with more threads than the winner's: a core that another takes for a
/// tenth of a second does that too, and hurts them alone. Lost twice, it is lost.
template <class Again>
double median_of_three(double first, const Again& again) {
  const double second = again();
  if (second >= 1) {
    return std::min(first, second);
  }
  const double third = again();
  return std::max(std::min(first, second), std::min(std::max(first, second), third));
}

}  // namespace

void clear(Program& program, const Workload& workload, std::initializer_list<Role> roles) {
  for (const Role role : roles) {
    for (const Id id : tensors_of(workload, role)) {
      program.upload(
          id, std::vector<std::byte>(static_cast<std::size_t>(crossover::bytes(workload[id]))));
    }
  }
}

AutomaticPlan::AutomaticPlan(const std::vector<Way>& ways, const Trials& trials, Clear clear,
                             Stopwatch now)
    : trials_(trials), clear_(std::move(clear)), now_(std::move(now)) {
  std::exception_ptr reason;
  for (const Way& way : ways) {
    can([&] { planned_.push_back({.choice = way.choice, .plan = way.plan()}); }, reason);
  }
  if (planned_.empty()) {
    std::rethrow_exception(reason);
  }
}

template <class Bytes>
std::int64_t AutomaticPlan::most(const Bytes& bytes) const {
  std::int64_t most = 0;
  for (const Planned& one : planned_) {
    most = std::max(most, bytes(*one.plan));
  }
  return most;
}

std::int64_t AutomaticPlan::bytes() const {
  return most([](const Plan& plan) { return plan.bytes(); });
}

std::int64_t AutomaticPlan::bytes_keeping_activations() const {
  return most([](const Plan& plan) { return plan.bytes_keeping_activations(); });
}

std::int64_t AutomaticPlan::launches() const { return planned_.front().plan->launches(); }

/// Of those that fit, the winner of all that came before it against each of the others.
AutomaticPlan::Winner AutomaticPlan::fastest() {
  std::exception_ptr reason;
  std::unique_ptr<Program> winner;
  double of_winner = 0;
  std::size_t place = 0;
  std::vector<Tried> tried;
  const double start = now_();
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    const Choice& choice = planned_[i].choice;
    if (can_not_win(choice, tried) || has_enough_threads(choice, tried) ||
        (winner && now_() - start > trials_.most_seconds)) {
      continue;
    }
    std::unique_ptr<Program> program;
    double seconds = 0;
    double ratio = 0;
    const auto attempt = [&] {
      program = planned_[i].plan->instantiate();
      trials_.begin(*program);
      seconds = seconds_of_least(*program, trials_, now_);
      alive();
    };
    if (!can(attempt, reason)) {
      continue;
    }
    if (winner) {  // whose own failure in a trial must not pass for the other's
      const auto ratio_now = [&] {
        return ratio_of_seconds({*winner, of_winner}, {*program, seconds}, trials_, now_);
      };
      ratio = ratio_now();
      if (ratio >= 1 && choice.threads > planned_[place].choice.threads) {
        ratio = median_of_three(ratio, [&] {
          seconds = seconds_of_least(*program, trials_, now_);
          return ratio_now();
        });
      }
    }
    tried.push_back({choice, winner ? ratio : 1});
    if (ratio < 1) {
      winner = std::move(program);
      of_winner = seconds;
      place = i;
      for (Tried& one : tried) {
        one.seconds_over_winner /= tried.back().seconds_over_winner;
      }
    }
  }
  if (!winner) {
    std::rethrow_exception(reason);
  }
  clear_(*winner);  // it has trained
  return {.place = place, .program = std::move(winner)};
}

std::unique_ptr<Program> AutomaticPlan::instantiate() {
  if (std::exchange(instantiated_, true)) {
    throw std::logic_error("a Plan is instantiated once");
  }
  Winner winner = planned_.size() > 1
                      ? fastest()
                      : Winner{.place = 0, .program = planned_.front().plan->instantiate()};
  Planned chosen = std::move(planned_[winner.place]);
  winner.program->set_chosen(chosen.choice);
  planned_.clear();
  planned_.push_back(std::move(chosen));
  return std::move(winner.program);
}

}  // namespace crossover
