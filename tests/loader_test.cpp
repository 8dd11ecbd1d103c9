// SPDX-License-Identifier: Apache-2.0
// Batches assembled from rows while a network trains, in an order of each epoch's own; and
// gradients that begin at zero.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>

#include "crossover/backend_over.h"
#include "crossover/catalogue.h"
#include "crossover/fingerprint.h"
#include "crossover/random.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "support.h"

namespace crossover::test {
namespace {

std::vector<std::int64_t> order_of(std::int64_t rows, std::int32_t epoch) {
  const Shuffle shuffle(rows, epoch);
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    order[static_cast<std::size_t>(i)] = shuffle[i];
  }
  return order;
}

TEST(Shuffle, HasEachRowOnce) {
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 15, 16, 17, 64, 65, 1000, 4096, 60000}) {
    for (const std::int32_t epoch : {0, 1, 2, 1000000}) {
      std::vector<std::int64_t> order = order_of(rows, epoch);
      std::sort(order.begin(), order.end());
      for (std::int64_t i = 0; i < rows; ++i) {
        ASSERT_EQ(order[static_cast<std::size_t>(i)], i) << rows << " rows, epoch " << epoch;
      }
    }
  }
}

TEST(Shuffle, IsAnotherOneInEachEpoch) {
  std::set<std::vector<std::int64_t>> seen;
  for (std::int32_t epoch = 0; epoch < 100; ++epoch) {
    seen.insert(order_of(100, epoch));
  }
  EXPECT_EQ(seen.size(), 100);
  // Of the 6 orders of three rows all come up.
  seen.clear();
  for (std::int32_t epoch = 0; epoch < 200; ++epoch) {
    seen.insert(order_of(3, epoch));
  }
  EXPECT_EQ(seen.size(), 6);
}

/// Over many epochs each row comes first, in the middle and last as often as any other.
TEST(Shuffle, PutsEachRowAnywhere) {
  constexpr std::int64_t rows = 10;
  constexpr int epochs = 10000;
  std::vector<int> counts(rows * rows);
  for (std::int32_t epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<std::int64_t> order = order_of(rows, epoch);
    for (std::int64_t place = 0; place < rows; ++place) {
      ++counts[static_cast<std::size_t>(place * rows + order[static_cast<std::size_t>(place)])];
    }
  }
  for (const int count : counts) {  // 1000 on average, with a standard deviation of 30
    EXPECT_NEAR(count, 1000, 150);
  }
}

/// As another program computed them.
TEST(Shuffle, IsTheSameOnEveryMachine) {
  EXPECT_EQ(order_of(10, 0), (std::vector<std::int64_t>{5, 6, 9, 0, 3, 7, 4, 1, 2, 8}));
  EXPECT_EQ(order_of(10, 1), (std::vector<std::int64_t>{8, 7, 9, 6, 2, 0, 4, 3, 1, 5}));
  const Shuffle large(60000, 7);
  EXPECT_EQ(large[0], 9599);
  EXPECT_EQ(large[59999], 49348);
}

struct Trained {
  Model model;
  TrainingOptions options;
  Dataset data;
};

/// Four batches, of which the last one is short: of as many as there are, and one more, slots.
Trained shuffled_mlp(bool shuffle) {
  return {.model = mlp("small", {6, 16, 8, 3}, Activation::tanh),
          .options = {.rows = 24, .batch = 7, .optimizer = MomentumOptions{}, .shuffle = shuffle},
          .data = uniform_rows({6}, 24, 3)};
}

/// Rows of tokens with a label for each time step.
Trained shuffled_gpt(bool shuffle) {
  const Task task = find_model("gpt-16");
  return {.model = task.model,
          .options = {.rows = 5, .batch = 2, .optimizer = AdamWOptions{}, .shuffle = shuffle},
          .data = task.generate(5)};
}

/// Trains two epochs and a step; what verification says of it: "" where it is right.
std::string loader_verdict(const Trained& subject, int workers, const CompileOptions& options,
                           const Trained& expected) {
  const auto cpu = make_cpu_backend();
  const auto loading = make_loading_backend(*cpu, workers);
  const Workload workload =
      loading->optimize(training_epoch(subject.model, subject.options), options);
  const auto program = loading->compile(workload, options);
  set_data(*program, workload, subject.data);
  const std::int64_t steps = 2 * std::ssize(workload.order) + 1;
  const Workload reference = training_epoch(expected.model, expected.options);
  return message_of<Mismatch>([&] {
    verify(*program, workload, reference_trajectory(reference, expected.data, steps));
    // After it was broken off in the middle of an epoch, it begins anew.
    verify(*program, workload, reference_trajectory(reference, expected.data, 2));
  });
}

TEST(Loader, TrainsAsTheReferenceDoes) {
  for (const bool shuffle : {false, true}) {
    for (const int workers : {0, 1, 2, 3, 5}) {
      for (const Execution execution : {Execution::eager, Execution::fused}) {
        const Trained subject = shuffled_mlp(shuffle);
        EXPECT_EQ(loader_verdict(subject, workers, {.execution = execution}, subject), "")
            << workers << " workers, shuffle " << shuffle;
      }
      const Trained tokens = shuffled_gpt(shuffle);
      EXPECT_EQ(loader_verdict(tokens, workers, {.threads = 2}, tokens), "")
          << workers << " workers";
    }
  }
}

TEST(Loader, TakesTheFastestExecution) {
  const Trained subject = shuffled_mlp(true);
  EXPECT_EQ(loader_verdict(subject, 2, {.execution = Execution::automatic}, subject), "");
}

TEST(Loader, AnotherOrderIsFound) {
  const std::string in_order = loader_verdict(shuffled_mlp(false), 2, {}, shuffled_mlp(true));
  EXPECT_TRUE(in_order.starts_with("the loss of step 1")) << in_order;
  Trained other = shuffled_mlp(true);  // two rows have changed places
  for (std::size_t i = 0; i < 6; ++i) {
    std::swap(other.data.inputs[i], other.data.inputs[6 + i]);
  }
  EXPECT_NE(loader_verdict(other, 2, {}, shuffled_mlp(true)), "");
}

/// The second epoch has another order than the first: the states say which it is.
TEST(Loader, CountsEpochs) {
  const Trained subject = shuffled_mlp(true);
  const auto cpu = make_cpu_backend();
  const auto loading = make_loading_backend(*cpu, 1);
  const Workload workload = training_epoch(subject.model, subject.options);
  const auto program = loading->compile(workload, {});
  set_data(*program, workload, subject.data);
  restart(*program, workload);
  const auto steps = std::ssize(workload.order);
  program->enqueue(0, steps - 1);
  EXPECT_EQ(download(*program, workload, workload.epoch), std::vector<double>{0});
  program->enqueue(steps - 1, 1);
  EXPECT_EQ(download(*program, workload, workload.epoch), std::vector<double>{1});
  restart(*program, workload);
  EXPECT_EQ(download(*program, workload, workload.epoch), std::vector<double>{0});
}

TEST(Loader, HandsOverDataAsItIs) {
  const Trained subject = shuffled_mlp(true);
  const auto cpu = make_cpu_backend();
  const auto loading = make_loading_backend(*cpu, 2);
  const Workload workload = training_epoch(subject.model, subject.options);
  const auto plan = loading->plan(workload, {});
  const std::int64_t planned = plan->bytes();
  const auto program = plan->instantiate();
  EXPECT_EQ(program->facts().bytes, planned);
  set_data(*program, workload, subject.data);
  program->enqueue(0, std::ssize(workload.order));
  const std::vector<double> inputs = download(*program, workload, find(workload, "inputs"));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ(inputs[i], static_cast<double>(static_cast<float>(subject.data.inputs[i])));
  }
  EXPECT_THROW(program->upload(find(workload, "inputs"), {}), std::invalid_argument);
  EXPECT_GT(program->profile()[OpCategory::product], 0);
}

TEST(Loader, NoDeviceShufflesByItself) {
  const Trained subject = shuffled_mlp(true);
  const Workload workload = training_epoch(subject.model, subject.options);
  EXPECT_THROW(make_cpu_backend()->plan(workload, {}), std::invalid_argument);
  EXPECT_NO_THROW(make_cpu_backend()->plan(unshuffled(workload), {}));
}

TEST(Loader, ShuffledTrainingHasAFingerprintOfItsOwn) {
  const Trained subject = shuffled_mlp(true);
  const Workload workload = training_epoch(subject.model, subject.options);
  EXPECT_NE(fingerprint(workload), fingerprint(unshuffled(workload)));
}

/// The same mathematics: in float64 all losses and parameters are those of gradients that are
/// overwritten.
void expect_the_training_that_overwrites(Trained subject) {
  const Workload overwrites = training_epoch(subject.model, subject.options);
  subject.options.zero_gradients = true;
  const Workload keeps = training_epoch(subject.model, subject.options);
  EXPECT_NE(fingerprint(overwrites), fingerprint(keeps));
  EXPECT_EQ(names_of(keeps.steps.back()).back(), "Zero");
  const std::int64_t steps = 2 * std::ssize(keeps.order);
  const Trajectory expected = reference_trajectory(overwrites, subject.data, steps);
  const Trajectory found = reference_trajectory(keeps, subject.data, steps);
  for (std::size_t i = 0; i < expected.losses.size(); ++i) {
    EXPECT_NEAR(found.losses[i], expected.losses[i], 1e-12);
  }
  for (std::size_t i = 0; i < expected.parameters.size(); ++i) {
    for (std::size_t at = 0; at < expected.parameters[i].second.size(); ++at) {
      ASSERT_NEAR(found.parameters[i].second[at], expected.parameters[i].second[at], 1e-12);
    }
  }
  const auto cpu = make_cpu_backend();
  const Workload workload = cpu->optimize(keeps);
  const auto program = cpu->compile(workload, {.threads = 2});
  set_data(*program, workload, subject.data);
  EXPECT_NO_THROW(verify(*program, workload, expected));
}

TEST(Zero, IsTheTrainingThatOverwritesGradients) {
  Trained subject = shuffled_mlp(false);
  expect_the_training_that_overwrites(subject);
  subject.options.accumulate = 2;
  expect_the_training_that_overwrites(subject);
  expect_the_training_that_overwrites(shuffled_gpt(false));
  const Task images = find_model("lenet-5");
  expect_the_training_that_overwrites(
      {.model = images.model, .options = {.rows = 5, .batch = 3}, .data = images.generate(5)});
}

/// A step that forgets it is found: from the second update on gradients are sums of several.
TEST(Zero, IsMissedWhereItIsForgotten) {
  Trained subject = shuffled_mlp(false);
  subject.options.zero_gradients = true;
  Workload workload = training_epoch(subject.model, subject.options);
  const Trajectory expected = reference_trajectory(workload, subject.data, 3);
  for (Step& step : workload.steps) {
    step.ops.pop_back();
  }
  const auto program = make_cpu_backend()->compile(workload, {});
  set_data(*program, workload, subject.data);
  EXPECT_THROW(verify(*program, workload, expected), Mismatch);
}

TEST(Zero, LeavesNothingToFuse) {
  Trained subject = shuffled_mlp(false);
  subject.options.zero_gradients = true;
  const Workload workload = training_epoch(subject.model, subject.options);
  EXPECT_THROW(make_cpu_backend()->plan(workload, {.execution = Execution::fused}), Unsupported);
  EXPECT_EQ(fingerprint(fuse_update(workload)), fingerprint(workload));
}

}  // namespace
}  // namespace crossover::test
