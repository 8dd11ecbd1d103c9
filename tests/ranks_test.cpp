// SPDX-License-Identifier: Apache-2.0
// Several ranks train what one process trains with the whole batch. Ranks are threads here.
#include <gtest/gtest.h>

#include <numeric>

#include "../src/ranks/share.h"
#include "crossover/catalogue.h"
#include "crossover/extensions.h"
#include "crossover/shared_training.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "support.h"
#include "thread_ranks.h"

namespace crossover::test {
namespace {

/// A network, its training by all ranks, and its data.
struct Subject {
  Model model;
  TrainingOptions options;
  Dataset data;
};

/// Batches that no number of ranks divides, and a short one.
Subject small_mlp() {
  return {.model = mlp("small", {6, 16, 8, 3}, Activation::tanh),
          .options = {.rows = 24, .batch = 7, .optimizer = MomentumOptions{}},
          .data = uniform_rows({6}, 24, 3)};
}

/// Tied weights: the gradient of a table is complete where its first layer is.
Subject small_gpt() {
  const Task task = find_model("gpt-16");
  return {.model = task.model,
          .options = {.rows = 6, .batch = 3, .optimizer = AdamWOptions{}},
          .data = task.generate(6)};
}

/// On shares another training: each has statistics and masks of its own.
Subject small_images() {
  Model model{.name = "images", .sample = {2, 4, 4}, .classes = 3, .layers = {}};
  Value value = model.add(ConvolutionLayer{4, {.size = 3, .padding = 1}}, {0});
  value = model.add(BatchNormLayer{}, {value});
  value = model.add(ActivationLayer{Activation::tanh}, {value});
  value = model.add(FlattenLayer{}, {value});
  value = model.add(DropoutLayer{0.3}, {value});
  model.add(LinearLayer{3}, {value});
  return {.model = model,
          .options = {.rows = 24, .batch = 7, .optimizer = MomentumOptions{}},
          .data = uniform_rows({2, 4, 4}, 24, 3)};
}

/// What losses and parameters must be: those of the whole batch, or of its shares one after
/// another.
Trajectory expected_of(const Subject& subject, std::int64_t steps, int ranks, bool by_shares) {
  TrainingOptions options = subject.options;
  if (!by_shares) {
    return reference_trajectory(training_epoch(subject.model, options), subject.data, steps);
  }
  options.ranks = ranks;
  options.in_turn = true;
  return reference_trajectory(training_epoch(subject.model, options),
                              rows_in_turn(subject.data, options), steps, ranks);
}

TrainingOptions share_of(TrainingOptions whole, int rank, int ranks) {
  whole.rank = rank;
  whole.ranks = ranks;
  return whole;
}

/// In float64: what the ranks sum are the gradients of the whole batch.
void expect_the_training_of_one(const Subject& subject, int ranks, std::int64_t bucket_bytes) {
  Reference whole(training_epoch(subject.model, subject.options));
  set_data(whole, subject.data);
  restart(whole);
  const auto steps = std::ssize(whole.workload().order);
  whole.run(0, steps);
  const Id loss = find(whole.workload(), "loss");

  std::vector<double> losses(static_cast<std::size_t>(steps));
  ThreadMeeting meeting(ranks);
  std::mutex adding;
  on_ranks(ranks, [&](int rank) {
    ThreadRanks own(meeting, rank);
    TrainingOptions share = share_of(subject.options, rank, ranks);
    share.bucket_bytes = bucket_bytes;
    Reference part(training_epoch(subject.model, share),
                   [&](std::span<double> values) { own.sum_of(values); });
    set_data(part, picked(subject.data, rows_of_rank(share)));
    restart(part);
    part.run(0, steps);
    const std::vector<double> weights = weights_of(share);
    const std::lock_guard lock(adding);
    for (std::size_t i = 0; i < losses.size(); ++i) {
      losses[i] += weights[i] * part[loss][i];
    }
    for (const Id id : tensors_of(whole.workload(), Role::parameter)) {
      for (std::size_t i = 0; i < whole[id].size(); ++i) {
        ASSERT_NEAR(part[id][i], whole[id][i], 1e-12) << whole.workload()[id].name;
      }
    }
  });
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], whole[loss][i], 1e-12);
  }
}

TEST(Ranks, SumTheGradientsOfTheWholeBatch) {
  for (const int ranks : {2, 3}) {
    expect_the_training_of_one(small_mlp(), ranks, 25 << 20);
  }
}

TEST(Ranks, SumThemByBuckets) { expect_the_training_of_one(small_mlp(), 2, 100); }

TEST(Ranks, SumTiedParametersOnce) { expect_the_training_of_one(small_gpt(), 2, 1000); }

TEST(Ranks, AddUpGradientsBeforeTheySumThem) {
  Subject subject = small_mlp();
  subject.options.accumulate = 2;
  expect_the_training_of_one(subject, 2, 25 << 20);
}

TEST(Ranks, RefuseABatchWithoutARowForEach) {
  const Subject subject = small_mlp();
  const auto with = [&](std::int64_t rows, std::int64_t batch) {
    TrainingOptions options = share_of(subject.options, 0, 3);
    options.rows = rows;
    options.batch = batch;
    return training_epoch(subject.model, options);
  };
  EXPECT_THROW(with(8, 2), std::invalid_argument);
  EXPECT_THROW(with(8, 7), std::invalid_argument);
  EXPECT_NO_THROW(with(10, 7));
}

/// What verification says of it on the CPU, by rank 0: "" where it is right. `astray`: by how much
/// the first sum of each rank is wrong.
std::string verdict(const Subject& subject, Execution execution, const std::vector<float>& astray,
                    bool by_shares = false) {
  const auto cpu = make_cpu_backend();
  const int size = static_cast<int>(astray.size());
  ThreadMeeting meeting(size);
  std::string what;
  on_ranks(size, [&](int rank) {
    ThreadRanks ranks(meeting, rank, astray[static_cast<std::size_t>(rank)]);
    const CompileOptions options{.execution = execution};
    if (rank > 0) {
      follow(ranks, [&](const std::string& row) {
        EXPECT_EQ(row, "the row");
        return Followed{cpu.get(), subject.model, subject.options, options};
      });
      return;
    }
    {
      const auto shared =
          make_shared_backend(ranks, *cpu, "the row", subject.model, subject.options);
      const Workload workload =
          shared->optimize(training_epoch(subject.model, subject.options), options);
      const auto program = shared->compile(workload, options);
      set_data(*program, workload, subject.data);
      const auto steps = std::ssize(workload.order);
      what = message_of<std::runtime_error>(
          [&] { verify(*program, workload, expected_of(subject, steps, size, by_shares)); });
      restart(*program, workload);
      expect_passes(*program, 3);
      for (int pass = 0; pass < 3; ++pass) {
        program->enqueue(0, steps);
        program->wait();
      }
      EXPECT_EQ(seconds_of_passes(*program).size(), astray.size());
      EXPECT_GT(program->profile()[OpCategory::communication], 0);
    }
    end_following(ranks);
  });
  return what;
}

TEST(Ranks, AreVerifiedAsOneProgram) {
  for (const Execution execution : {Execution::eager, Execution::overlapped}) {
    EXPECT_EQ(verdict(small_mlp(), execution, {0, 0}), "");
    EXPECT_EQ(verdict(small_mlp(), execution, {0, 0, 0}), "");
    EXPECT_EQ(verdict(small_gpt(), execution, {0, 0}), "");
  }
}

TEST(Ranks, NormalizeAndDropByShares) {
  Subject subject = small_images();
  for (const std::int64_t accumulate : {1, 2}) {
    subject.options.accumulate = accumulate;
    EXPECT_EQ(verdict(subject, Execution::eager, {0, 0}, true), "");
    EXPECT_EQ(verdict(subject, Execution::overlapped, {0, 0, 0}, true), "");
  }
  EXPECT_NE(verdict(subject, Execution::eager, {0, 0}), "");
}

TEST(Ranks, SharesOneAfterAnotherAreTheWholeBatch) {
  for (const Subject& subject : {small_mlp(), small_gpt()}) {
    const Trajectory whole = expected_of(subject, 5, 3, false);
    const Trajectory shares = expected_of(subject, 5, 3, true);
    for (std::size_t step = 0; step < whole.losses.size(); ++step) {
      EXPECT_NEAR(shares.losses[step], whole.losses[step], 1e-12);
    }
    for (std::size_t i = 0; i < whole.parameters.size(); ++i) {
      EXPECT_EQ(shares.parameters[i].first, whole.parameters[i].first);
      for (std::size_t at = 0; at < whole.parameters[i].second.size(); ++at) {
        ASSERT_NEAR(shares.parameters[i].second[at], whole.parameters[i].second[at], 1e-12);
      }
    }
  }
}

TEST(Ranks, WrongSumsAreFound) {
  EXPECT_TRUE(verdict(small_mlp(), Execution::eager, {1, 1}).starts_with("the loss of step"));
  const std::string differs = verdict(small_mlp(), Execution::overlapped, {0, 0.01F});
  EXPECT_NE(differs.find("than rank 0 after the same steps"), std::string::npos) << differs;
}

/// The others are in sums that nobody will finish.
TEST(RanksDeathTest, EndTogetherWhereRankZeroGivesUpAmidAnnouncedPasses) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Subject subject = small_mlp();
  const auto cpu = make_cpu_backend();
  EXPECT_DEATH(
      {
        ThreadMeeting meeting(2);
        on_ranks(2, [&](int rank) {
          ThreadRanks ranks(meeting, rank);
          const CompileOptions options{.execution = Execution::eager};
          if (rank > 0) {
            follow(ranks, [&](const std::string& /*row*/) {
              return Followed{cpu.get(), subject.model, subject.options, options};
            });
            return;
          }
          const auto shared =
              make_shared_backend(ranks, *cpu, "the row", subject.model, subject.options);
          const Workload workload = training_epoch(subject.model, subject.options);
          const auto program = shared->compile(workload, options);
          set_data(*program, workload, subject.data);
          restart(*program, workload);
          expect_passes(*program, 3);
          program->enqueue(0, std::ssize(workload.order));
        });
      },
      "rank 0: it ends before the passes that all were to do");
}

TEST(Ranks, AProcessAloneHasOne) {
  EXPECT_EQ(launched_ranks(), 1);
  EXPECT_EQ(launched_rank(), 0);
}

}  // namespace
}  // namespace crossover::test
