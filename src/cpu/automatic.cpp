// SPDX-License-Identifier: Apache-2.0
#include "automatic.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "crossover/cost.h"
#include "crossover/dense_training.h"
#include "crossover/training.h"
#include "fused/plan.h"
#include "plan.h"

namespace crossover::cpu {
namespace {

/// Calls make(); what it throws because the device can't is kept, unless there is one before.
template <class Make>
auto made_or_null(const Make& make, std::exception_ptr& reason) -> decltype(make()) {
  try {
    return make();
  } catch (const Unsupported&) {
    reason = reason ? reason : std::current_exception();
  } catch (const OutOfMemory&) {
    reason = reason ? reason : std::current_exception();
  }
  return nullptr;
}

struct Tried {
  Choice choice;
  double seconds_over_winner = 1;
};

/// Twice as many threads halve the time, or a little more where their caches hold more.
bool can_not_win(const Choice& choice, const std::vector<Tried>& tried) {
  constexpr double of_caches = 1.5;
  return std::any_of(tried.begin(), tried.end(), [&](const Tried& one) {
    return one.choice.execution == choice.execution &&
           one.seconds_over_winner * one.choice.threads > of_caches * choice.threads;
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

/// What training has changed; activations every step computes anew.
void clear_training(Program& program, const Workload& workload) {
  for (const Role role : {Role::parameter, Role::gradient, Role::state, Role::loss}) {
    for (const Id id : tensors_of(workload, role)) {
      program.upload(
          id, std::vector<std::byte>(static_cast<std::size_t>(crossover::bytes(workload[id]))));
    }
  }
}

}  // namespace

AutomaticPlan::AutomaticPlan(const std::vector<Way>& ways, std::int64_t runs, Clear clear,
                             Stopwatch now)
    : runs_(runs), clear_(std::move(clear)), now_(std::move(now)) {
  std::exception_ptr reason;
  for (const Way& way : ways) {
    if (auto plan = made_or_null(way.plan, reason)) {
      planned_.push_back({.choice = way.choice, .plan = std::move(plan)});
    }
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
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    const Choice& choice = planned_[i].choice;
    if (can_not_win(choice, tried)) {
      continue;
    }
    auto program = made_or_null([&] { return planned_[i].plan->instantiate(); }, reason);
    if (!program) {
      continue;
    }
    double seconds = 0;
    const auto against_winner = [&] {
      seconds = seconds_of_one(*program, now_);
      return winner ? ratio_of_seconds({*winner, of_winner}, {*program, seconds}, runs_, now_) : 0;
    };
    double ratio = against_winner();
    if (ratio >= 1 && choice.threads > planned_[place].choice.threads) {
      ratio = median_of_three(ratio, against_winner);
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

std::vector<Execution> executions_of(const Workload& workload) {
  if (cost(workload).avoidable_flops > 0) {
    return {Execution::eager, Execution::winograd, Execution::automatic};
  }
  try {
    static_cast<void>(dense_training(workload));
    return {Execution::eager, Execution::fused, Execution::automatic};
  } catch (const Unsupported&) {
    return {Execution::eager};
  }
}

std::unique_ptr<Plan> plan_automatic(const Workload& workload, const CompileOptions& options) {
  const auto shared = std::make_shared<const Workload>(workload);
  const std::vector<Execution> all = executions_of(workload);
  const auto has = [&](Execution execution) {
    return std::find(all.begin(), all.end(), execution) != all.end();
  };
  std::vector<Way> ways;
  const auto add = [&](Execution execution, int threads) {
    if (!has(execution)) {
      return;
    }
    CompileOptions own = options;
    own.execution = execution;
    own.threads = threads;
    ways.push_back({{execution, threads}, [shared, own]() -> std::unique_ptr<Plan> {
                      if (own.execution == Execution::fused) {
                        return plan_fused(*shared, own);
                      }
                      return std::make_unique<CpuPlan>(*shared, own);
                    }});
  };
  if (has(Execution::winograd)) {  // long steps, in which all threads pay
    add(Execution::eager, options.threads);
    add(Execution::winograd, options.threads);
  } else {
    add(Execution::eager, 1);
    add(Execution::fused, 1);
    if (options.threads > 1) {
      add(Execution::fused, options.threads);
      add(Execution::eager, options.threads);
    }
  }
  return std::make_unique<AutomaticPlan>(
      ways, std::ssize(workload.order),
      [shared](Program& program) { clear_training(program, *shared); });
}

}  // namespace crossover::cpu
