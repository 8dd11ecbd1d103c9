// SPDX-License-Identifier: Apache-2.0
#include "automatic.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <utility>

#include "crossover/alive.h"
#include "crossover/training.h"

namespace crossover {
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
    if (can_not_win(choice, tried) || (winner && now_() - start > trials_.most_seconds)) {
      continue;
    }
    std::unique_ptr<Program> program;
    double seconds = 0;
    double ratio = 0;
    const auto attempt = [&] {
      program = planned_[i].plan->instantiate();
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
