// SPDX-License-Identifier: Apache-2.0
// One kernel that trains a whole order, on the emulation, where the rows come from the host: in
// parts, each copied before its kernel or beside the one before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "crossover/backend_over.h"
#include "crossover/catalogue.h"
#include "crossover/executions.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "tailored.h"

namespace crossover::test {
namespace {

using cuda_host::Order;

constexpr std::int64_t copied_batch = 37;
constexpr std::int64_t copied_runs = 20;
constexpr std::int64_t copied_rows = (copied_runs - 1) * copied_batch + 7;
/// A staging buffer holds 343 rows of 190 inputs and a label: 9 batches.
constexpr std::int64_t copied_parts = 3;
constexpr std::int64_t launches_of_part = 3;  // two copies and the kernel

/// That of a network in tailored.h.
Training several_parts(std::int64_t copies = 1) {
  const Model model = mlp("several parts", {190, 4, 2}, Activation::tanh);
  return {fuse(training_epoch(model, {.rows = copied_rows,
                                      .batch = copied_batch,
                                      .optimizer = AdamWOptions{.learning_rate = 0.01},
                                      .copies = copies})),
          uniform_data(model, copied_rows)};
}

std::vector<double> losses_and_parameters(Program& program, const Workload& workload) {
  std::vector<double> all = download(program, workload, find(workload, "loss"));
  for (const Id id : tensors_of(workload, Role::parameter)) {
    const std::vector<double> values = download(program, workload, id);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

class EmulatedCopiedRows : public testing::TestWithParam<std::tuple<Placement, Execution>> {
 protected:
  [[nodiscard]] static CompileOptions options() {
    const auto& [placement, execution] = GetParam();
    return {.execution = execution, .placement = placement};
  }
};

/// The kernel is the same, and so is each bit.
TEST_P(EmulatedCopiedRows, TrainAsResidentOnesDoInWhateverOrder) {
  const Training training = several_parts();
  CompileOptions resident = options();
  resident.placement = Placement::resident;
  std::vector<double> expected;
  {
    const auto program = started(*gpu(), training, resident);
    EXPECT_EQ(program->facts().launches, 1);
    program->enqueue(0, copied_runs);
    expected = losses_and_parameters(*program, training.workload);
  }
  for (std::uint64_t seed = 0; seed < (test_all() ? 8 : 3); ++seed) {
    cuda_host::reset(seed, seed == 0 ? Order::eager : seed == 1 ? Order::lazy : Order::shuffled);
    const auto program = started(*gpu(), training, options());
    EXPECT_EQ(program->facts().launches, copied_parts * launches_of_part);
    program->enqueue(0, copied_runs);
    EXPECT_EQ(losses_and_parameters(*program, training.workload), expected) << "seed " << seed;
    restart(*program, training.workload);
    program->enqueue(0, 2);
    program->enqueue(2, copied_runs - 2);
    EXPECT_EQ(losses_and_parameters(*program, training.workload), expected)
        << "in pieces, seed " << seed;
    program->enqueue(0, copied_runs);  // and is destroyed with work in flight
  }
}

TEST_P(EmulatedCopiedRows, AreVerified) {
  const Training training = several_parts();
  const auto program = started(*gpu(), training, options());
  program->enqueue(0, copied_runs);
  EXPECT_NO_THROW(
      verify_state(*program, training.workload,
                   reference_trajectory(training.workload, training.data, copied_runs)));
}

/// Runs whose rows do not lie behind one another are parts of their own.
TEST_P(EmulatedCopiedRows, MayComeInAnyOrder) {
  Training training = several_parts();
  std::swap(training.workload.order[0], training.workload.order[1]);
  const auto program = started(*gpu(), training, options());
  constexpr std::int64_t left = 2;  // of 18 runs
  EXPECT_EQ(program->facts().launches, (2 + left) * launches_of_part);
  program->enqueue(0, 5);
  EXPECT_NO_THROW(verify_state(*program, training.workload,
                               reference_trajectory(training.workload, training.data, 5)));
}

TEST_P(EmulatedCopiedRows, AreCopiedOnceForCopiesThatTrainTogether) {
  constexpr std::int64_t copies = 3;
  constexpr std::int64_t few = 11;  // in two parts
  const Training training = several_parts(copies);
  const auto own = gpu();
  const auto backend = make_copies_backend(*own, copies);
  const auto program = started(*backend, training, options());
  EXPECT_EQ(program->facts().launches, copied_parts * launches_of_part);
  program->enqueue(0, copies * few);
  EXPECT_NO_THROW(
      verify_state(*program, training.workload,
                   reference_trajectory(training.workload, training.data, copies * few)));
}

TEST_P(EmulatedCopiedRows, AreReadWhereEachOperationIsKept) {
  const Model model = mlp("kept", {5, 18, 7, 3}, Activation::sigmoid);  // of tailored.h as well
  const Training training{
      fuse(training_epoch(model, {.rows = 90, .batch = copied_batch, .optimizer = SgdOptions{}})),
      uniform_data(model, 90)};
  CompileOptions kept = options();
  kept.keep_activations = true;
  const auto program = gpu()->compile(training.workload, kept);
  set_data(*program, training.workload, training.data);
  Reference reference(training.workload);
  set_data(reference, training.data);
  EXPECT_GT(verify_operations(*program, reference, 3, Precision::f32).error, 0);
}

/// A data set that a staging buffer holds lies as in that, inputs and labels side by side.
TEST_P(EmulatedCopiedRows, ComeByOneCopyWhereAllComeTogether) {
  const Model model = mlp("few rows", {190, 4, 2}, Activation::tanh);
  const Training training{
      fuse(training_epoch(model, {.rows = 2 * copied_batch + 3,
                                  .batch = copied_batch,
                                  .optimizer = AdamWOptions{.learning_rate = 0.01}})),
      uniform_data(model, 2 * copied_batch + 3)};
  const auto program = started(*gpu(), training, options());
  EXPECT_EQ(program->facts().launches, 2);
  program->enqueue(0, 3);
  EXPECT_NO_THROW(verify_state(*program, training.workload,
                               reference_trajectory(training.workload, training.data, 3)));
}

TEST_P(EmulatedCopiedRows, CallNothingThatWaitsOrAllocates) {
  const auto program = started(*gpu(), several_parts(), options());
  const std::int64_t waits = cuda_host::calls_of("cudaStreamSynchronize");
  const std::int64_t memory =
      cuda_host::calls_of("cudaMalloc") + cuda_host::calls_of("cudaHostAlloc");
  program->enqueue(0, copied_runs);
  EXPECT_EQ(cuda_host::calls_of("cudaStreamSynchronize"), waits);
  EXPECT_EQ(cuda_host::calls_of("cudaMalloc") + cuda_host::calls_of("cudaHostAlloc"), memory);
}

TEST_P(EmulatedCopiedRows, AreInTheProfile) {
  const Training training = several_parts();
  const auto program = started(*gpu(), training, options());
  const Profile profile = program->profile();
  EXPECT_TRUE(profile.contains(OpCategory::copy_to_device));
  EXPECT_GT(profile.at(OpCategory::product), 0);
  EXPECT_TRUE(std::all_of(profile.begin(), profile.end(),
                          [](const auto& part) { return part.second >= 0; }));
  restart(*program, training.workload);
  program->enqueue(0, copied_runs);
  EXPECT_NO_THROW(
      verify_state(*program, training.workload,
                   reference_trajectory(training.workload, training.data, copied_runs)));
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedCopiedRows,
                         testing::Combine(testing::Values(Placement::pageable, Placement::pinned,
                                                          Placement::pinned_async),
                                          testing::Values(Execution::persistent,
                                                          Execution::tailored)),
                         [](const auto& of_case) {
                           return name_of(std::get<0>(of_case.param)) + "_" +
                                  std::string(facts_of(std::get<1>(of_case.param)).name);
                         });

}  // namespace
}  // namespace crossover::test
