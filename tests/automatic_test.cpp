// SPDX-License-Identifier: Apache-2.0
// Execution::automatic on ways to run that take as long as they are told to.
#include "../src/automatic/automatic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <vector>

#include "crossover/catalogue.h"
#include "crossover/start.h"
#include "crossover/training.h"

namespace crossover::test {
namespace {

/// The time here: only programs that run set it forward.
double now = 0;
double told_time() { return now; }

/// What became of the programs of one way.
struct Seen {
  int planned = 0, made = 0;
  std::vector<std::int64_t> runs;  ///< of each program that was made, in positions of the order
  std::int64_t least = std::numeric_limits<std::int64_t>::max();  ///< positions at once
};

enum class Trouble {
  none,
  unsupported,
  does_not_fit,
  memory_is_taken,
  refused_when_run,
  device_fails_when_planned,
  device_fails_when_made,
  device_fails_when_run,
};

class SlowProgram : public Program {
 public:
  SlowProgram(double seconds, double hindered_until, Trouble trouble, Seen& seen, int& alive)
      : seconds_(seconds),
        hindered_until_(hindered_until),
        trouble_(trouble),
        seen_(seen),
        alive_(alive) {
    number_ = static_cast<std::size_t>(seen_.made++);
    seen_.runs.push_back(0);
    ++alive_;
  }
  ~SlowProgram() override { --alive_; }
  void upload(Id /*id*/, std::span<const std::byte> /*from*/) override {}
  void download(Id /*id*/, std::span<std::byte> /*to*/) override {}
  void enqueue(std::int64_t /*first*/, std::int64_t count) override {
    seen_.runs[number_] += count;
    seen_.least = std::min(seen_.least, count);
    if (trouble_ == Trouble::refused_when_run) {
      throw Unsupported("it does not run after all");
    }
    if (trouble_ == Trouble::device_fails_when_run) {
      throw DeviceFailed("the device is lost");
    }
    constexpr double hindered = 5;
    now += seconds_ * static_cast<double>(count) * (now < hindered_until_ ? hindered : 1);
  }
  void wait() override {}
  Profile profile() override { return {}; }

 private:
  double seconds_, hindered_until_;
  Trouble trouble_;
  Seen& seen_;
  int& alive_;
  std::size_t number_ = 0;
};

/// Programs that take that long for each position of the order.
class Ways {
 public:
  void add(Choice choice, double seconds, std::int64_t bytes, Trouble trouble = Trouble::none) {
    seen.push_back(std::make_unique<Seen>());
    const bool shares = choice.threads > 1;
    ways.push_back({choice, [this, seconds, bytes, trouble, shares, own = seen.back().get()] {
                      ++own->planned;
                      return std::make_unique<SlowPlan>(*this, seconds, bytes, trouble, shares,
                                                        *own);
                    }});
  }

  std::vector<Way> ways;
  std::vector<std::unique_ptr<Seen>> seen;
  int alive = 0, most_alive = 0;
  double hindered_until = 0;  ///< programs of several threads take several times as long until then

 private:
  class SlowPlan : public Plan {
   public:
    SlowPlan(Ways& all, double seconds, std::int64_t bytes, Trouble trouble, bool shares,
             Seen& seen)
        : all_(all),
          seconds_(seconds),
          bytes_(bytes),
          trouble_(trouble),
          shares_(shares),
          seen_(seen) {
      if (trouble == Trouble::unsupported) {
        throw Unsupported("not this one");
      }
      if (trouble == Trouble::does_not_fit) {
        throw OutOfMemory("far too large");
      }
      if (trouble == Trouble::device_fails_when_planned) {
        throw DeviceFailed("the device is lost");
      }
    }
    [[nodiscard]] std::int64_t bytes() const override { return bytes_; }
    [[nodiscard]] std::int64_t bytes_keeping_activations() const override { return 2 * bytes_; }
    [[nodiscard]] std::int64_t launches() const override { return bytes_ / 10; }
    [[nodiscard]] std::unique_ptr<Program> instantiate() override {
      if (trouble_ == Trouble::memory_is_taken) {
        throw OutOfMemory("taken by another");
      }
      if (trouble_ == Trouble::device_fails_when_made) {
        throw DeviceFailed("the device is lost");
      }
      auto made = std::make_unique<SlowProgram>(seconds_, shares_ ? all_.hindered_until : 0,
                                                trouble_, seen_, all_.alive);
      all_.most_alive = std::max(all_.most_alive, all_.alive);
      return made;
    }

   private:
    Ways& all_;
    double seconds_;
    std::int64_t bytes_;
    Trouble trouble_;
    bool shares_;
    Seen& seen_;
  };
};

constexpr Choice eager_1{Execution::eager, 1}, eager_2{Execution::eager, 2},
    fused_1{Execution::fused, 1}, fused_2{Execution::fused, 2};
constexpr double fast = 1e-4, slow = 5e-4;

AutomaticPlan automatic_plan(const Ways& all, const Trials& trials = {.runs = 10}) {
  return AutomaticPlan(
      all.ways, trials, [](Program& /*program*/) {}, told_time);
}

std::optional<Choice> chosen_of(const Ways& all, const Trials& trials = {.runs = 10}) {
  return automatic_plan(all, trials).instantiate()->facts().chosen;
}

TEST(Automatic, KeepsTheFastestAndClearsIt) {
  for (std::size_t fastest = 0; fastest < 4; ++fastest) {
    Ways all;
    const std::vector choices{eager_1, eager_2, fused_1, fused_2};
    for (std::size_t i = 0; i < choices.size(); ++i) {
      all.add(choices[i], i == fastest ? fast : slow, 100 * static_cast<std::int64_t>(i + 1));
    }
    const Program* cleared = nullptr;
    AutomaticPlan plan(
        all.ways, {.runs = 10}, [&](Program& program) { cleared = &program; }, told_time);
    EXPECT_EQ(plan.bytes(), 400) << "until it is known, the most that it may be";
    EXPECT_EQ(plan.bytes_keeping_activations(), 800);
    const std::unique_ptr<Program> program = plan.instantiate();
    EXPECT_EQ(program->facts().chosen, choices[fastest]);
    EXPECT_EQ(plan.bytes(), 100 * static_cast<std::int64_t>(fastest + 1));
    EXPECT_EQ(plan.launches(), plan.bytes() / 10);
    const Seen& chosen = *all.seen[fastest];
    EXPECT_EQ(chosen.planned, 1) << "asking for bytes plans nothing";
    EXPECT_EQ(chosen.made, 1);
    EXPECT_GT(chosen.runs.front(), 0);
    EXPECT_EQ(cleared, program.get()) << "it has trained on zeros";
    EXPECT_EQ(all.alive, 1);
    EXPECT_EQ(all.most_alive, 2);
    EXPECT_THROW(static_cast<void>(plan.instantiate()), std::logic_error);
  }
}

TEST(Automatic, TriesNoMoreThreadsWhereTheyCanNotSaveEnough) {
  for (const double lost_by : {2.0, 5.0}) {
    Ways all;
    all.add(eager_1, fast, 100);
    all.add(fused_1, lost_by * fast, 100);
    all.add(fused_2, lost_by * fast, 100);
    EXPECT_EQ(chosen_of(all), eager_1);
    EXPECT_EQ(all.seen.back()->made, lost_by < 3 ? 1 : 0) << lost_by;
  }
}

TEST(Automatic, DoublesThreadsAsLongAsThatHelps) {
  struct Case {
    std::vector<double> seconds;  // on 1, 2, 4, 8 threads
    int best, made;
  };
  for (const auto& [seconds, best, made] :
       {Case{{8, 4.5, 2.7, 2.0}, 8, 4}, Case{{8, 5, 6, 9}, 2, 3}, Case{{8, 9, 11, 4}, 1, 2}}) {
    Ways all;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      all.add({Execution::fused, 1 << i}, 1e-4 * seconds[i], 100);
    }
    EXPECT_EQ(chosen_of(all), (Choice{Execution::fused, best}));
    const auto was_made = [](const auto& seen) { return seen->made > 0; };
    EXPECT_EQ(std::ranges::count_if(all.seen, was_made), made);
  }
}

TEST(Automatic, HearsMoreThreadsAgainThatLost) {
  constexpr double of_one = 0.01;
  for (const double of_two : {0.006, 0.02}) {
    Ways all;
    all.add(eager_1, of_one, 100);
    all.add(eager_2, of_two, 100);
    AutomaticPlan plan = automatic_plan(all);
    all.hindered_until = now + 0.2;  // as long as the first trial
    EXPECT_EQ(plan.instantiate()->facts().chosen, of_two < of_one ? eager_2 : eager_1);
    EXPECT_LE(all.seen.back()->runs.front(), 3 * (2 + 9));
  }
}

TEST(Automatic, LeavesOutWhatIsNotToBeHad) {
  for (const Trouble trouble : {Trouble::unsupported, Trouble::does_not_fit,
                                Trouble::memory_is_taken, Trouble::refused_when_run}) {
    Ways all;
    all.add(fused_1, fast, 100, trouble);
    all.add(eager_1, slow, 100);
    all.add(fused_2, fast, 100, trouble);
    EXPECT_EQ(chosen_of(all), eager_1);
  }
}

TEST(Automatic, AFailedDeviceIsNoReasonToChooseAnotherWay) {
  for (const Trouble trouble : {Trouble::device_fails_when_planned, Trouble::device_fails_when_made,
                                Trouble::device_fails_when_run}) {
    Ways all;
    all.add(eager_1, fast, 100);
    all.add(fused_1, slow, 100, trouble);
    const auto compile = [&] { static_cast<void>(chosen_of(all)); };
    EXPECT_THROW(compile(), DeviceFailed);
    EXPECT_EQ(all.alive, 0);
  }
}

TEST(Automatic, PassesOverTheWholeOrderWhereItMust) {
  Ways all;
  all.add(eager_1, fast, 100);
  all.add(fused_1, slow, 100);
  const auto program = automatic_plan(all, {.runs = 1000, .least = 1000}).instantiate();
  for (const auto& seen : all.seen) {
    EXPECT_EQ(seen->least, 1000);
  }
}

TEST(Automatic, TriesNoFurtherWayOnceItsTimeIsUp) {
  for (const double most_seconds : {1.0, 1e9}) {
    Ways all;
    all.add(eager_1, 2.0, 100);
    all.add(fused_1, 1.0, 100);
    const auto program =
        automatic_plan(all, {.runs = 10, .most_seconds = most_seconds}).instantiate();
    EXPECT_EQ(program->facts().chosen, most_seconds < 2 ? eager_1 : fused_1);
    EXPECT_EQ(all.seen.back()->made, most_seconds < 2 ? 0 : 1);
  }
}

TEST(Automatic, TriesOtherAlgorithmsOfWhatComesNearTheWinner) {
  const Choice graph{.execution = Execution::graph};
  const Choice timed{.execution = Execution::eager, .products = ProductChoice::autotuned};
  for (const double of_eager : {1.2, 3.0}) {
    Ways all;
    all.add({.execution = Execution::eager}, of_eager * fast, 100);
    all.add(graph, fast, 100);
    all.add(timed, 0.5 * fast, 100);
    const auto program = automatic_plan(all).instantiate();
    EXPECT_EQ(program->facts().chosen, of_eager < 1.5 ? timed : graph);
  }
}

TEST(Automatic, SaysWhatIsWrongWithTheFirstWhereNoneIsToBeHad) {
  Ways none;
  none.add(eager_1, fast, 100, Trouble::does_not_fit);
  none.add(fused_1, fast, 100, Trouble::unsupported);
  EXPECT_THROW(automatic_plan(none), OutOfMemory);
  Ways taken;
  taken.add(eager_1, fast, 100, Trouble::memory_is_taken);
  taken.add(fused_1, fast, 100, Trouble::memory_is_taken);
  AutomaticPlan plan = automatic_plan(taken);
  EXPECT_THROW(static_cast<void>(plan.instantiate()), OutOfMemory);
}

TEST(Automatic, TriesNothingWhereThereIsNoChoice) {
  Ways all;
  all.add(eager_1, slow, 100);
  all.add(fused_1, fast, 100, Trouble::unsupported);
  const auto program = automatic_plan(all).instantiate();
  EXPECT_EQ(all.seen.front()->made, 1);
  EXPECT_EQ(all.seen.front()->runs, std::vector<std::int64_t>{0});
}

TEST(Automatic, TriesLongStepsNoMoreOftenThanItMust) {
  Ways all;
  all.add(eager_1, 0.02, 100);
  all.add(fused_1, 0.06, 100);
  EXPECT_EQ(chosen_of(all), eager_1);
  EXPECT_LE(all.seen.back()->runs.front(), 1 + 3) << "one to warm up, three that do not overlap";
  Ways longer;
  longer.add(eager_1, 0.06, 100);
  longer.add(fused_1, 0.12, 100);
  EXPECT_EQ(chosen_of(longer), eager_1);
  EXPECT_EQ(longer.seen.front()->runs.front(), 1);
  EXPECT_EQ(longer.seen.back()->runs.front(), 1);
}

TEST(Automatic, OfTheCpuSaysWhatItChose) {
  const Task task = find_model("disc-4");
  const auto backend = make_cpu_backend();
  const Workload workload = backend->optimize(
      training_epoch(task.model, {.rows = 200, .batch = 100, .optimizer = task.optimizer}));
  for (const int threads : {1, 2, 3}) {
    const auto chosen =
        backend->compile(workload, {.threads = threads, .execution = Execution::automatic})
            ->facts()
            .chosen;
    ASSERT_TRUE(chosen);
    EXPECT_NE(chosen->execution, Execution::automatic);
    EXPECT_LE(chosen->threads, threads);
  }
  EXPECT_FALSE(backend->compile(workload, {})->facts().chosen);
}

TEST(Automatic, OfTheCpuBeginsAtZeroAndPlansForKeptActivations) {
  const Task task = find_model("disc-4");
  const auto backend = make_cpu_backend();
  const Workload workload = backend->optimize(
      training_epoch(task.model, {.rows = 200, .batch = 100, .optimizer = AdamWOptions{}}));
  CompileOptions options{.threads = 2, .execution = Execution::automatic};
  const auto plan = backend->plan(workload, options);
  options.keep_activations = true;
  EXPECT_EQ(plan->bytes_keeping_activations(), backend->plan(workload, options)->bytes());
  const auto program = plan->instantiate();
  EXPECT_EQ(program->facts().bytes, plan->bytes());
  for (const Role role : {Role::parameter, Role::state, Role::loss}) {
    for (const Id id : tensors_of(workload, role)) {
      for (const double value : download(*program, workload, id)) {
        ASSERT_EQ(value, 0) << workload[id].name;
      }
    }
  }
}

TEST(Automatic, GraphsAreNotOfTheCpu) {
  const Task task = find_model("disc-2");
  const auto backend = make_cpu_backend();
  const Workload workload = backend->optimize(
      training_epoch(task.model, {.rows = 200, .batch = 100, .optimizer = task.optimizer}));
  for (const Execution execution :
       {Execution::graph, Execution::graph_epoch, Execution::persistent}) {
    EXPECT_THROW(static_cast<void>(backend->plan(workload, {.execution = execution})), Unsupported);
  }
}

}  // namespace
}  // namespace crossover::test
