// SPDX-License-Identifier: Apache-2.0
// A budget on a clock that rows set forward, and on devices that compute nothing.
#include <benchmark/benchmark.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "made_rows.h"

namespace crossover::test {
namespace {

using namespace bench;
using Names = std::vector<std::string>;

/// What a row takes, in seconds of the made-up clock: far more than the test itself.
struct Takes {
  double to_make = 0;
  double repetition = 0;
};

class BudgetTest : public MadeRows {
 protected:
  BudgetTest() : MadeRows({.repetitions = 1}) {}  // one trial, of one iteration

  /// Planned as `planned` and taking `takes`, beside the row of that name by another program. Its
  /// name.
  std::string add(const std::string& device, int batch, const Takes& planned, const Takes& takes,
                  const std::string& pass = "networks", const std::string& lead = "") {
    Row row{
        .spec = {.family = RowFamily::epoch, .model = "disc-2", .batch = batch, .device = device},
        .expected = {.all = planned.to_make + repetitions_ * planned.repetition,
                     .repetition = planned.repetition}};
    if (device == "cpu") {
      row.spec.threads = 1;
    }
    if (!lead.empty()) {
      row.spec.program = "other";
      row.lead = lead;
    }
    const auto made = std::make_shared<int>(0);  // times
    return MadeRows::add(
        std::move(row), pass,
        [this, made, device, takes](Result& /*result*/) -> std::unique_ptr<PreparedBenchmark> {
          pass_time(takes.to_make);
          if ((*made)++ > 0 && when_made_anew_) {
            when_made_anew_(device);
          }
          if (held_ >= room_) {
            throw OutOfMemory("not enough memory");
          }
          return std::make_unique<Passing>(*this, takes.repetition);
        });
  }

  void measure(double seconds, const std::function<void(double seconds)>& look_closer = {}) {
    measure({.limits = {.budget_seconds = seconds}}, look_closer);
  }

  void measure(const ScheduleOptions& options,
               const std::function<void(double seconds)>& look_closer = {}) {
    run(options, repetitions_, *worker(), look_closer);
    for (const std::string& name : rows_.names()) {
      taken_[name] = rows_[name].record.repetitions.size();
      const Row& row = rows_[name];
      const bool is_open = !row.record.has_had_a_turn() && !row.turns.is_left_out;
      EXPECT_EQ(std::ranges::count(left_open_, name), is_open ? 1 : 0) << name;
    }
  }

  void pass_time(double seconds) {
    if (seconds_left_) {
      told_.emplace_back(spent_.all(), seconds_left_());
    }
    spent_.start -=
        std::chrono::duration_cast<Instant::duration>(std::chrono::duration<double>(seconds));
  }

  int repetitions_ = 1;
  /// Before a row is made for further repetitions.
  std::function<void(const std::string& device)> when_made_anew_;
  std::map<std::string, std::size_t> taken_;
  std::vector<std::pair<double, double>> told_;  ///< seconds of the run, and those it has left

 private:
  class Passing : public PreparedBenchmark {
   public:
    Passing(BudgetTest& test, double seconds) : test_(test), seconds_(seconds) { ++test_.held_; }
    ~Passing() override { --test_.held_; }
    Passing(const Passing&) = delete;
    Passing& operator=(const Passing&) = delete;
    void start() override { test_.pass_time(seconds_); }
    void run() override {  // never as long as before: the noise is more than none
      runs_ += 1;
      for (int i = 0; i < 1000 * runs_; ++i) {
        benchmark::DoNotOptimize(i);
      }
    }

   private:
    BudgetTest& test_;
    double seconds_;
    int runs_ = 0;
  };
};

TEST_F(BudgetTest, RepetitionsStayWhereNoMoreCanBeHad) {
  repetitions_ = 3;
  const std::string row = add("cpu", 1, {1, 1}, {1, 1});
  when_made_anew_ = [](const std::string& /*device*/) { throw OutOfMemory("not enough memory"); };
  measure(1000);
  EXPECT_EQ(taken_[row], 3U);
  EXPECT_EQ(unmeasured_, 0U);
  EXPECT_EQ(rows_[row].record.outcome, Outcome::measured);
  EXPECT_NE(said_.find("keeps the repetitions that it has: not enough memory"), std::string::npos);
}

TEST_F(BudgetTest, ALostGpuTakesNothingFromFinishedRows) {
  repetitions_ = 3;
  const Names rows{add("cuda", 1, {1, 1}, {1, 1}), add("cuda", 2, {1, 1}, {1, 1}),
                   add("cpu", 3, {1, 1}, {1, 1})};
  when_made_anew_ = [](const std::string& device) {
    if (device == "cuda") {
      throw DeviceFailed("the GPU is lost");
    }
  };
  measure(1000);
  EXPECT_FALSE(device_of("cuda").failure.empty());
  EXPECT_EQ(unmeasured_, 0U);
  for (const std::string& row : rows) {
    EXPECT_EQ(rows_[row].record.outcome, Outcome::measured) << row;
    EXPECT_GE(taken_[row], 3U) << row;
  }
}

TEST_F(BudgetTest, WrongResultsOfFurtherRepetitionsAreAFailure) {
  repetitions_ = 3;
  const std::string row = add("cpu", 1, {1, 1}, {1, 1});
  when_made_anew_ = [](const std::string& /*device*/) {
    throw std::runtime_error("the results differ");
  };
  measure(1000);
  EXPECT_EQ(unmeasured_, 1U);
  EXPECT_EQ(rows_[row].record.outcome, Outcome::failed);
}

TEST_F(BudgetTest, LearnsHowMuchLongerRowsTakeThanPlanned) {
  for (int batch = 1; batch <= 20; ++batch) {
    add("cpu", batch, {9, 1}, {150, 10});
  }
  // The 210 s that are left behind the fifth are less than twice a row's 160 s.
  measure(1010);
  EXPECT_EQ(left_open_.size(), 15U);
}

/// Within five percent, however wrong the plan is, where more is planned than fits. One row is a
/// small part of the budget.
TEST_F(BudgetTest, EndsInTime) {
  for (const double wrong : {0.25, 1.0, 4.0}) {
    SCOPED_TRACE(wrong);
    repetitions_ = 3;
    for (int batch = 1; batch <= 400; ++batch) {
      const double seconds = 1 + batch % 7;
      add("cpu", batch, {3 * seconds, seconds}, {3 * wrong * seconds, wrong * seconds});
    }
    constexpr double budget = 2000;
    measure(budget);
    EXPECT_FALSE(left_open_.empty());
    EXPECT_NEAR(spent_.all(), budget, 0.05 * budget);
    begin_anew();
  }
}

/// What a minute measures must decide something: readers take no verdict from fewer.
TEST_F(BudgetTest, RowsHaveAsManyRepetitionsAsAVerdictTakesWhereNotAllFit) {
  constexpr std::size_t fewest = 5;
  repetitions_ = 9;
  for (int batch = 1; batch <= 40; ++batch) {
    add("cpu", batch, {1, 1}, {1, 1});
  }
  measure(100);
  EXPECT_FALSE(left_open_.empty());
  for (const auto& [row, taken] : taken_) {
    EXPECT_TRUE(taken == 0 || taken >= fewest) << row << " has " << taken;
  }
}

/// From a third of the run on within a quarter, but for what the row of the moment takes: where
/// rows of one device take twice as long as planned and those of the other half as long, each in
/// several passes, and a closer look follows.
TEST_F(BudgetTest, TellsHowLongTheRestWillTake) {
  constexpr double closer_seconds = 60;
  constexpr double longest = 30;  // of a row
  repetitions_ = 9;
  for (int batch = 1; batch <= 60; ++batch) {
    const double seconds = 1 + batch % 3;
    add("cpu", batch, {0, seconds}, {0, 2 * seconds}, "Epoch");
    add("cuda", 100 + batch, {0, seconds}, {0, seconds / 2}, "Epoch");
  }
  // Without disturbed rows again: whether there are any, the machine of the moment decides.
  measure({.limits = {.most_passes = 9, .share_again = 0}, .closer_seconds = closer_seconds},
          [&](double /*seconds*/) { pass_time(closer_seconds); });
  const double all = spent_.all();
  std::size_t looked_at = 0;
  for (const auto& [spent, left] : told_) {
    if (spent > all / 3) {
      ASSERT_NEAR(left, all - spent, 0.25 * (all - spent) + longest) << spent << " of " << all;
      ++looked_at;
    }
  }
  EXPECT_GT(looked_at, 100U);
}

TEST_F(BudgetTest, TheCloserLookComesBehindTheNetworks) {
  add("cpu", 1, {9, 1}, {9, 1});
  add("cpu", 2, {9, 1}, {9, 1}, "Copy");
  double most = 0;
  measure(100, [&](double seconds) { most = seconds; });
  EXPECT_NEAR(most, 45, 1);
}

TEST_F(BudgetTest, TheCloserLookComesBehindAllWhereNoPassIsOfNetworks) {
  add("cpu", 1, {9, 1}, {9, 1}, "Epoch");
  add("cpu", 2, {9, 1}, {9, 1}, "Copy");
  double most = 0;
  measure(100, [&](double seconds) { most = seconds; });
  EXPECT_NEAR(most, 40, 1);
}

/// Five repetitions of a row take 51 s.
TEST_F(BudgetTest, WhatEndsTooLateForTheFirstAnswerComesBehindIt) {
  repetitions_ = 7;
  for (int batch = 1; batch <= 4; ++batch) {
    add("cpu", batch, {1, 10}, {1, 10}, pass_of_answer);
  }
  std::vector<std::size_t> when_answered;
  when_answered_ = [&] {
    for (const std::string& name : rows_.names()) {
      when_answered.push_back(rows_[name].record.repetitions.size());
    }
  };
  measure({.answer_seconds = 110});
  EXPECT_EQ(when_answered, (std::vector<std::size_t>{5, 5, 0, 0}));
  EXPECT_TRUE(left_open_.empty());
}

/// Its rows take three times as long as planned, which none of ours does.
TEST_F(BudgetTest, AnotherProgramKeepsToItsShareOfTheTime) {
  constexpr double share = 0.25;
  repetitions_ = 5;
  for (const double budget : {0.0, 400.0}) {
    SCOPED_TRACE(budget);
    begin_anew();
    taken_.clear();
    Names others;
    for (int batch = 1; batch <= 20; ++batch) {
      const std::string lead = add("cpu", batch, {0, 2}, {0, 2});
      others.push_back(add("cpu", batch, {0, 1}, {0, 3}, "networks", lead));
    }
    ScheduleOptions options{.limits = {.most_passes = 5, .peers_share = share}};
    options.limits.budget_seconds = budget > 0 ? std::optional(budget) : std::nullopt;
    measure(options);
    double taken = 0;
    std::size_t measured = 0;
    for (const std::string& name : others) {
      taken += rows_[name].turns.took;
      measured += taken_[name] > 0 ? 1 : 0;
      EXPECT_TRUE(taken_[name] == 0 || taken_[name] == 5) << name;
      EXPECT_LE(rows_[name].record.instances, 3) << name;
      EXPECT_EQ(rows_[name].turns.is_left_out, taken_[name] == 0) << name;
    }
    const double most = share * (budget > 0 ? budget : spent_.all());
    EXPECT_GT(taken, 0.5 * most);
    EXPECT_LT(taken, 1.01 * most);
    EXPECT_LT(measured, others.size());
    EXPECT_GT(taken_[others.front()], 0U);
    EXPECT_TRUE(left_open_.empty());
  }
}

/// Whose rows turn out to be dear where they are made again: the first to show it is one too many.
TEST_F(BudgetTest, AnotherProgramHasNoMoreTurnsOnceItsShareIsUsedUp) {
  constexpr double dear = 50;
  repetitions_ = 5;
  Names others;
  for (int batch = 1; batch <= 10; ++batch) {
    const std::string lead = add("cpu", batch, {0, 2}, {0, 2}, "Epoch");
    others.push_back(add("cuda", batch, {0, 1}, {0, 1}, "Epoch", lead));
  }
  when_made_anew_ = [&](const std::string& device) { pass_time(device == "cuda" ? dear : 0); };
  measure({.limits = {.most_passes = 5, .peers_share = 0.25}});
  double taken = 0;
  for (const std::string& name : others) {
    taken += rows_[name].turns.took;
  }
  EXPECT_GT(taken, dear);
  EXPECT_LT(taken, dear + 100.0 / 3);  // of ours 100 s
  for (const PlannedRow& planned : plan_) {
    EXPECT_TRUE(rows_[planned.name].device->has_own_memory() || taken_[planned.name] == 5);
  }
}

/// Five repetitions of a row take 11 s, those of another program as long.
TEST_F(BudgetTest, AThirdOfTheTimeUntilTheFirstAnswerIsAnotherPrograms) {
  repetitions_ = 7;
  Names ours;
  Names others;
  for (int batch = 1; batch <= 4; ++batch) {
    ours.push_back(add("cpu", batch, {1, 2}, {1, 2}, pass_of_answer));
    others.push_back(add("cpu", batch, {1, 2}, {1, 2}, pass_of_answer, ours.back()));
  }
  std::vector<std::size_t> when_answered;
  when_answered_ = [&] {
    for (const Names& all : {ours, others}) {
      for (const std::string& name : all) {
        when_answered.push_back(rows_[name].record.repetitions.size());
      }
    }
  };
  measure({.limits = {.peers_share = 0.6}, .answer_seconds = 70});
  EXPECT_EQ(when_answered, (std::vector<std::size_t>{5, 5, 5, 5, 5, 5, 0, 0}));
  for (const std::string& name : others) {
    EXPECT_EQ(taken_[name], 7U) << name;
  }
}

TEST_F(BudgetTest, ARowThatIsPutBackForMemoryAndHasNoTimeLeftIsOpen) {
  add("cpu", 1, {10, 1}, {10, 30});
  const std::string row = add("cuda", 1, {10, 1}, {60, 1});
  room_ = 1;
  measure(100);
  EXPECT_EQ(left_open_, Names{row});
}

}  // namespace
}  // namespace crossover::test
