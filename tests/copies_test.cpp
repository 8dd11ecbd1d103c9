// SPDX-License-Identifier: Apache-2.0
// Copies of a network that train at once.
#include "crossover/backend_over.h"

#include <gtest/gtest.h>

#include <numeric>

#include "crossover/catalogue.h"
#include "crossover/random.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "support.h"

namespace crossover::test {
namespace {

constexpr std::int64_t count_of_copies = 3;

/// Three batches, the last of which is short.
TrainingOptions of_copies(const Optimizer& optimizer, std::int64_t accumulate = 1) {
  return {.rows = 13,
          .batch = 5,
          .optimizer = optimizer,
          .accumulate = accumulate,
          .copies = count_of_copies};
}

Model of_tanh() { return mlp("small", {4, 9, 3}, Activation::tanh); }

Workload optimized(const TrainingOptions& options) {
  return make_cpu_backend()->optimize(training_epoch(of_tanh(), options));
}

TEST(Copies, HaveTensorsOfTheirOwnButForRowsAndLosses) {
  TrainingOptions options = of_copies(SgdOptions{});
  const Workload all = training_epoch(of_tanh(), options);
  options.copies = 1;
  const Workload one = training_epoch(of_tanh(), options);

  EXPECT_EQ(parameter_count(all), count_of_copies * parameter_count(one));
  EXPECT_EQ(tensors_of(all, Role::data), tensors_of(one, Role::data));
  EXPECT_EQ(all[find(all, "loss")].shape, (Shape{count_of_copies * std::ssize(one.order)}));
  ASSERT_EQ(all.order.size(), count_of_copies * one.order.size());
  for (std::size_t at = 0; at < all.order.size(); ++at) {
    EXPECT_EQ(all.order[at].first_row, one.order[at / count_of_copies].first_row);
  }
  EXPECT_NO_THROW(check(all));
}

/// Their starting values follow one another.
TEST(Copies, StartFromOtherParameters) {
  const Workload all = training_epoch(of_tanh(), of_copies(SgdOptions{}));
  const std::vector<Id> parameters = tensors_of(all, Role::parameter);
  std::uint64_t position = 0;
  for (const Id id : parameters) {
    const StartValues values(all, id);
    const double bound = all[id].start.bound;
    EXPECT_EQ(values[0], (2 * uniform(Stream::parameters, position) - 1) * bound) << all[id].name;
    position += values.size();
  }
  EXPECT_EQ(all[parameters[4]].name, all[parameters[0]].name + " of copy 2");
}

TEST(Copies, TrainOneProcessOnRowsAsTheyLie) {
  TrainingOptions options = of_copies(SgdOptions{});
  options.shuffle = true;
  EXPECT_THROW(training_epoch(of_tanh(), options), std::invalid_argument);
  options = of_copies(SgdOptions{});
  options.ranks = 2;
  EXPECT_THROW(training_epoch(of_tanh(), options), std::invalid_argument);
}

class CpuCopies : public testing::TestWithParam<int> {};

TEST_P(CpuCopies, TrainEachAsTheReferenceDoes) {
  const auto own = make_cpu_backend();
  const auto backend = make_copies_backend(*own, count_of_copies);
  for (const auto& options : {of_copies(SgdOptions{.learning_rate = 0.1}),
                              of_copies(AdamWOptions{}), of_copies(SgdOptions{}, 2)}) {
    const Training training{optimized(options), uniform_rows({4}, 13, 3)};
    const std::int64_t steps = 2 * std::ssize(training.workload.order);
    const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
    for (const Execution execution : backend->executions(training.workload, Precision::f32)) {
      const auto program =
          started(*backend, training, {.threads = GetParam(), .execution = execution});
      const Verification found = verify(*program, training.workload, expected);
      EXPECT_EQ(found.steps, steps);
      EXPECT_GT(program->facts().bytes, 0);
    }
  }
}

/// Whatever parts of the order it is given.
TEST_P(CpuCopies, TrainAnyPartOfTheOrder) {
  const auto own = make_cpu_backend();
  const auto backend = make_copies_backend(*own, count_of_copies);
  const Training training{optimized(of_copies(SgdOptions{.learning_rate = 0.1})),
                          uniform_rows({4}, 13, 3)};
  const CompileOptions options{.threads = GetParam(), .execution = Execution::fused};
  const auto at_once = started(*backend, training, options);
  const auto in_parts = started(*backend, training, options);
  const std::int64_t all = std::ssize(training.workload.order);
  at_once->enqueue(0, all);
  for (const auto& [first, end] : {std::pair{0, 1}, {1, 2}, {2, 7}, {7, 9}}) {
    in_parts->enqueue(first, end - first);
  }
  for (const Role role : {Role::loss, Role::parameter}) {
    for (const Id id : tensors_of(training.workload, role)) {
      EXPECT_EQ(download(*in_parts, training.workload, id),
                download(*at_once, training.workload, id))
          << training.workload[id].name;
    }
  }
}

/// Which of them is wrong is named.
TEST_P(CpuCopies, AreVerifiedOneByOne) {
  const auto own = make_cpu_backend();
  const auto backend = make_copies_backend(*own, count_of_copies);
  const Training training{optimized(of_copies(SgdOptions{.learning_rate = 0.1})),
                          uniform_rows({4}, 13, 3)};
  const std::int64_t steps = std::ssize(training.workload.order);
  const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
  const auto program = started(*backend, training, {.threads = GetParam()});
  program->enqueue(0, steps);
  EXPECT_NO_THROW(verify_state(*program, training.workload, expected));
  const Id last = tensors_of(training.workload, Role::parameter).back();
  std::vector<double> values = download(*program, training.workload, last);
  values.front() += 0.01;
  upload(*program, training.workload, last, values);
  const std::string what =
      message_of<Mismatch>([&] { verify_state(*program, training.workload, expected); });
  EXPECT_NE(what.find("of copy 3"), std::string::npos) << what;
}

/// A clock on which the second of two programs, the copies in turn, takes `seconds` for the 1 s of
/// the first.
Stopwatch second_takes(double seconds) {
  return [=, readings = 0, now = 0.0]() mutable {
    constexpr int of_both = 4;
    now += readings % of_both == 1 ? 1 : readings % of_both == 3 ? seconds : 0;
    ++readings;
    return now;
  };
}

/// Where there are more threads than copies left, in whichever way the trial finds faster.
TEST(Copies, OfTheLastRoundMayTakeTurnsOnAllThreads) {
  const auto own = make_cpu_backend();
  TrainingOptions options = of_copies(SgdOptions{.learning_rate = 0.1});
  const Training training{
      own->optimize(training_epoch(mlp("wide", {512, 1024, 3}, Activation::relu), options)),
      uniform_rows({512}, 13, 3)};
  const std::int64_t steps = std::ssize(training.workload.order);
  const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
  for (const int threads : {2, 4}) {
    for (const double seconds : {0.5, 2.0}) {
      const auto backend = make_copies_backend(*own, count_of_copies, second_takes(seconds));
      const auto program = started(*backend, training, {.threads = threads});
      EXPECT_EQ(program->facts().threads, seconds < 1 ? threads : std::min(threads, 3));
      EXPECT_EQ(verify(*program, training.workload, expected).steps, steps);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, CpuCopies, testing::Values(1, 2, 4));

TEST(Copies, CountTheirMemoryAndLaunches) {
  const auto own = make_cpu_backend();
  const auto backend = make_copies_backend(*own, count_of_copies);
  TrainingOptions options = of_copies(SgdOptions{});
  const auto planned = backend->plan(optimized(options), {.threads = 2});
  options.copies = 1;
  const auto alone = own->plan(optimized(options), {});
  EXPECT_EQ(planned->bytes(), count_of_copies * alone->bytes());
  EXPECT_EQ(planned->launches(), count_of_copies * alone->launches());
  EXPECT_EQ(planned->instantiate()->facts().bytes, planned->bytes());
}

}  // namespace
}  // namespace crossover::test
