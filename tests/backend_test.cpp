// SPDX-License-Identifier: Apache-2.0
// What a Program promises beside its arithmetic.
#include "crossover/backend.h"

#include <gtest/gtest.h>

#include "crossover/catalogue.h"
#include "crossover/start.h"
#include "support.h"

namespace crossover::test {
namespace {

Training small_training() {
  const Model model = mlp("m", {4, 3, 2}, Activation::relu);
  return {fuse(training_epoch(model, {.rows = 13, .batch = 5, .optimizer = AdamWOptions{}})),
          uniform_rows({4}, 13, 2)};
}

std::vector<double> state_of(Program& program, const Workload& workload) {
  std::vector<double> all;
  for (const Role role : {Role::parameter, Role::state, Role::loss}) {
    for (const Id id : tensors_of(workload, role)) {
      const std::vector<double> values = download(program, workload, id);
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

TEST(Program, RunsPartsOfTheOrderAsTheWhole) {
  const Training training = small_training();
  const auto backend = make_cpu_backend();
  const auto whole = started(*backend, training, 1);
  whole->enqueue(0, 3);
  const auto parts = started(*backend, training, 1);
  parts->enqueue(0, 1);
  parts->enqueue(1, 2);
  EXPECT_EQ(state_of(*whole, training.workload), state_of(*parts, training.workload));
}

TEST(Program, RestartsFromTheSameState) {
  const Training training = small_training();
  const auto backend = make_cpu_backend();
  const auto program = started(*backend, training, 2);
  program->enqueue(0, 3);
  const std::vector<double> first = state_of(*program, training.workload);
  program->enqueue(0, 3);
  EXPECT_NE(state_of(*program, training.workload), first);
  restart(*program, training.workload);
  program->enqueue(0, 3);
  EXPECT_EQ(state_of(*program, training.workload), first);
}

TEST(Program, ProfilesTheSameComputation) {
  const Training training = small_training();
  const auto backend = make_cpu_backend();
  const auto program = started(*backend, training, 1);
  const Profile profile = program->profile();
  for (const OpCategory kind :
       {OpCategory::product, OpCategory::elementwise, OpCategory::loss, OpCategory::update}) {
    ASSERT_TRUE(profile.contains(kind));
    EXPECT_GT(profile.at(kind), 0);
  }
  const std::vector<double> profiled = state_of(*program, training.workload);
  restart(*program, training.workload);
  program->enqueue(0, 3);
  EXPECT_EQ(state_of(*program, training.workload), profiled);
}

TEST(Program, GivesBackWhatWasUploaded) {
  const Training training = small_training();
  const auto backend = make_cpu_backend();
  const auto program = backend->compile(training.workload, {.threads = 1});
  for (const Id id : tensors_of(training.workload, Role::parameter)) {
    const std::vector<double> values = numbers(elements(training.workload[id].shape), id);
    upload(*program, training.workload, id, values);
    EXPECT_EQ(download(*program, training.workload, id), values);
  }
}

TEST(Program, RefusesCopiesThatDoNotFit) {
  const Training training = small_training();
  const auto backend = make_cpu_backend();
  const auto program = backend->compile(training.workload, {.threads = 1});
  const Id view = tensors_of(training.workload, Role::input).front();
  const Id parameter = tensors_of(training.workload, Role::parameter).front();
  EXPECT_THROW(upload(*program, training.workload, view, numbers(5 * 4, 1)), std::invalid_argument);
  EXPECT_THROW(upload(*program, training.workload, parameter, numbers(1, 1)),
               std::invalid_argument);
  std::vector<std::byte> too_small(3);
  EXPECT_THROW(program->download(parameter, too_small), std::invalid_argument);
}

TEST(Backend, RefusesWhatCanNotRun) {
  const auto backend = make_cpu_backend();
  Training training = small_training();
  EXPECT_THROW(static_cast<void>(backend->compile(training.workload, {.threads = 0})),
               std::invalid_argument);
  training.workload.order.push_back({.step = 0, .first_row = 9});
  EXPECT_THROW(static_cast<void>(backend->compile(training.workload, {.threads = 1})),
               std::invalid_argument);
}

TEST(Backend, SaysHowItCanExecuteANetwork) {
  const auto cpu = make_cpu_backend();
  const auto gpu = make_planned_gpu();
  const auto on = [](const Backend& backend, const char* network, std::int64_t accumulate = 1) {
    const Task task = find_model(network);
    return backend.executions(
        training_epoch(
            task.model,
            {.rows = 8, .batch = 4, .optimizer = task.optimizer, .accumulate = accumulate}),
        Precision::f32);
  };
  using Executions = std::vector<Execution>;
  const Execution eager = Execution::eager;
  EXPECT_EQ(on(*cpu, "disc-4"), (Executions{eager, Execution::fused, Execution::automatic}));
  EXPECT_EQ(on(*cpu, "disc-4", 2), Executions{eager});
  EXPECT_EQ(on(*cpu, "resnet-56"), (Executions{eager, Execution::winograd, Execution::automatic}));
  EXPECT_EQ(on(*cpu, "lstm"), Executions{eager});
  const Executions graphs{eager, Execution::graph, Execution::graph_epoch, Execution::automatic};
  const Executions all{eager, Execution::graph, Execution::graph_epoch, Execution::persistent,
                       Execution::automatic};
  EXPECT_EQ(on(*gpu, "disc-4"), all);
  EXPECT_EQ(on(*gpu, "disc-4", 2), graphs);
  EXPECT_EQ(on(*gpu, "resnet-56"), graphs);
}

TEST(Backend, PlannedGpuRunsNothing) {
  const Training training = small_training();
  EXPECT_THROW(static_cast<void>(make_planned_gpu()->plan(training.workload, {})), Unsupported);
}

TEST(Backend, SaysWhatItIs) {
  const Description description = make_cpu_backend()->describe();
  EXPECT_EQ(description.memory_bytes, 0);
  EXPECT_TRUE(description.libraries.at("onednn").starts_with("3."));
}

}  // namespace
}  // namespace crossover::test
