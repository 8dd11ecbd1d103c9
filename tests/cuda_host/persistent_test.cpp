// SPDX-License-Identifier: Apache-2.0
// The kernel that trains a whole order, on the emulation: golden runs by blocks and clusters of
// several sizes, each operation against the reference.
#include <array>

#include "crossover/backend_over.h"
#include "crossover/catalogue.h"
#include "crossover/dense_training.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "golden.h"
#include "persistent_crews.h"

namespace crossover::test {
namespace {

// ---- against the reference
// -----------------------------------------------------------------------------------

struct Way {
  Form form;
  Crew crew;
};

class EmulatedPersistent : public testing::TestWithParam<std::tuple<Golden, Way>> {};

TEST_P(EmulatedPersistent, Trajectory) {
  const auto& [golden, way] = GetParam();
  const Training training = golden.training(way.form);
  if (flops(golden, training.workload) > 3e8) {
    GTEST_SKIP() << "too slow on the emulation";
  }
  try {
    if (!leave_room_for(way.crew, training.workload)) {
      GTEST_SKIP() << "another team needs less memory";
    }
    expect_golden(golden, training, *started(*gpu(), training, persistent));
  } catch (const Unsupported& error) {
    GTEST_SKIP() << error.what();
  }
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<Golden, Way>>& info) {
  const auto& [golden, way] = info.param;
  return label(golden) + "_" + label(way.form) + "_" + testing::PrintToString(way.crew);
}

INSTANTIATE_TEST_SUITE_P(
    Gpu, EmulatedPersistent,
    testing::Combine(testing::ValuesIn(golden_mlps()),
                     testing::Values(Way{Form::fused, {.threads = 32}}, Way{Form::fused, one_block},
                                     Way{Form::fused, cluster_of(2, 128)},
                                     Way{Form::fused, cluster_of(4, 32)},
                                     Way{Form::fused, cluster_of(8, 64)},
                                     Way{Form::fused, all_blocks},
                                     Way{Form::update_fused, one_block},
                                     Way{Form::update_fused, cluster_of(8, 64)})),
    name_of_case);

/// The largest network of each team, a few steps: the products' large tiles.
TEST(EmulatedPersistentTraining, OfTheLargestNetworksIsVerified) {
  struct Largest {
    const char* name;
    unsigned cluster_blocks;
    cuda::TeamKind team;
  };
  for (const Largest& of : {Largest{"disc-7", 1, cuda::TeamKind::block},
                            {"disc-7x1.25", 8, cuda::TeamKind::cluster},
                            {"disc-8", 8, cuda::TeamKind::grid}}) {
    SCOPED_TRACE(of.name);
    cuda_host::reset();
    cuda_host::device().cluster_blocks = of.cluster_blocks;
    cuda_host::device().cache_bytes = 2 << 20U;
    const Task task = find_model(of.name);
    const Training training{
        fuse(training_epoch(task.model, {.rows = 130, .batch = 100, .optimizer = task.optimizer})),
        task.generate(130)};
    EXPECT_EQ(plan_of(training.workload).team, of.team);
    const auto program = started(*gpu(), training, persistent);
    EXPECT_EQ(program->facts().launches, 1);
    EXPECT_NO_THROW(verify(*program, training.workload,
                           reference_trajectory(training.workload, training.data, 2)));
  }
}

/// Copies of a network, each trained by a team of its own, in one launch.
TEST(EmulatedPersistentCopies, TrainTogetherAndApart) {
  constexpr std::int64_t copies = 5;
  const Model model = mlp("odd", {5, 18, 7, 3}, Activation::relu);
  TrainingOptions options{
      .rows = 90, .batch = 37, .optimizer = AdamWOptions{.learning_rate = 0.01}};
  const Workload one = fuse(training_epoch(model, options));
  options.copies = copies;
  const Training training{fuse(training_epoch(model, options)), uniform_data(model, 90)};
  const std::int64_t steps = std::ssize(training.workload.order);
  const Trajectory expected = reference_trajectory(training.workload, training.data, steps);
  for (const Crew& crew : {one_block, cluster_of(4, 64), all_blocks}) {
    SCOPED_TRACE(testing::PrintToString(crew));
    cuda_host::reset();
    ASSERT_TRUE(leave_room_for(crew, one));
    const auto own = gpu();
    const auto backend = make_copies_backend(*own, copies);
    const auto plan = backend->plan(training.workload, persistent);
    const bool together = crew.team != cuda::TeamKind::grid;
    EXPECT_EQ(plan->launches(), together ? 1 : copies);
    CompileOptions kept = persistent;
    kept.keep_activations = true;
    EXPECT_EQ(backend->plan(training.workload, kept)->launches(), copies) << "each by itself";
    const auto program = started(*backend, training, persistent);
    EXPECT_EQ(program->facts().launches, together ? 1 : copies);
    program->enqueue(0, steps);
    EXPECT_NO_THROW(verify_state(*program, training.workload, expected));
    restart(*program, training.workload);
    program->enqueue(0, copies);
    for (std::int64_t position = copies; position < 2 * copies; ++position) {
      program->enqueue(position, 1);
    }
    program->enqueue(2 * copies, steps - 2 * copies);
    EXPECT_NO_THROW(verify_state(*program, training.workload, expected)) << "in parts";
  }
}

class EmulatedPersistentOdd : public testing::TestWithParam<int> {
 protected:
  static Training with(Activation activation) {
    return odd_training(SgdOptions{}, false, LossFunction::cross_entropy, activation);
  }
  static Training training() {
    switch (GetParam()) {
      case 0:
        return odd_training(SgdOptions{});
      case 1:
        return odd_training(SgdOptions{}, true, LossFunction::bce);
      case 2:
        return odd_training(AdamWOptions{.learning_rate = 0.01});
      case 3:
        return odd_training(MomentumOptions{}, false, LossFunction::mse);
      case 4:
        return with(Activation::gelu);
      case 5:
        return with(Activation::gelu_tanh);
      case 6:
        return with(Activation::silu);
      default:
        return with(Activation::hardswish);
    }
  }
};

TEST_P(EmulatedPersistentOdd, IsVerifiedInWhateverPieces) {
  const Training odd = training();
  const Trajectory expected = reference_trajectory(odd.workload, odd.data, 3);
  for (const Crew& crew :
       {Crew{.threads = 32}, Crew{.threads = 256}, one_block, cluster_of(2, 32), cluster_of(2, 512),
        cluster_of(4, 64), cluster_of(8, 32), cluster_of(8, 256), all_blocks}) {
    SCOPED_TRACE(testing::PrintToString(crew));
    cuda_host::reset(static_cast<std::uint64_t>(crew.threads) + crew.blocks);
    ASSERT_TRUE(leave_room_for(crew, odd.workload));
    const auto program = started(*gpu(), odd, persistent);
    program->enqueue(0, 3);
    EXPECT_NO_THROW(verify_state(*program, odd.workload, expected));
    restart(*program, odd.workload);
    program->enqueue(0, 1);
    program->enqueue(1, 2);
    EXPECT_NO_THROW(verify_state(*program, odd.workload, expected)) << "in parts";
  }
}

TEST_P(EmulatedPersistentOdd, WritesWhatEachOperationDoesWhereItIsKept) {
  const Training odd = training();
  CompileOptions options = persistent;
  options.keep_activations = true;
  for (const Crew& crew : {one_block, cluster_of(4, 64), all_blocks}) {
    SCOPED_TRACE(testing::PrintToString(crew));
    cuda_host::reset();
    ASSERT_TRUE(leave_room_for(crew, odd.workload));
    const auto program = gpu()->compile(odd.workload, options);
    set_data(*program, odd.workload, odd.data);
    Reference reference(odd.workload);
    set_data(reference, odd.data);
    const OperationVerification result = verify_operations(*program, reference, 3, Precision::f32);
    EXPECT_GE(result.operations, 3 + 1 + 3);
    EXPECT_GT(result.error, 0);
  }
}

/// What threads do first, and when copies come in, changes no bit.
TEST_P(EmulatedPersistentOdd, RepeatsToTheBit) {
  const Training odd = training();
  for (const Crew& crew : {one_block, cluster_of(8, 64), all_blocks}) {
    std::vector<std::vector<double>> results;
    for (const std::uint64_t seed : {1U, 2U}) {
      cuda_host::reset(seed);
      ASSERT_TRUE(leave_room_for(crew, odd.workload));
      const auto program = started(*gpu(), odd, persistent);
      program->enqueue(0, 3);
      std::vector<double> all = download(*program, odd.workload, find(odd.workload, "loss"));
      for (const Id id : tensors_of(odd.workload, Role::parameter)) {
        const std::vector<double> values = download(*program, odd.workload, id);
        all.insert(all.end(), values.begin(), values.end());
      }
      results.push_back(all);
    }
    EXPECT_EQ(results[0], results[1]) << testing::PrintToString(crew);
  }
}

/// Fewer rows than blocks, in the last batch: some have none.
TEST(EmulatedPersistentCluster, TrainsBatchesOfFewerRowsThanBlocks) {
  const Model model = mlp("odd", {3, 6, 2}, Activation::relu);
  const Training training{
      fuse(training_epoch(model, {.rows = 53, .batch = 50, .optimizer = SgdOptions{}})),
      uniform_rows({3}, 53, 2)};
  ASSERT_TRUE(leave_room_for(cluster_of(8, 64), training.workload));
  const auto program = started(*gpu(), training, persistent);
  program->enqueue(0, 2);
  EXPECT_NO_THROW(verify_state(*program, training.workload,
                               reference_trajectory(training.workload, training.data, 2)));
}

std::string name_of_training(const testing::TestParamInfo<int>& info) {
  constexpr std::array names{"sgd",  "update_in_place_bce", "adamw", "momentum_mse",
                             "gelu", "gelu_tanh",           "silu",  "hardswish"};
  return names.at(static_cast<std::size_t>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedPersistentOdd, testing::Range(0, 8), name_of_training);

// ---- what a Program tells
// -----------------------------------------------------------------------------------

TEST(EmulatedPersistentProgram, IsOneLaunchAndWaitsForNothing) {
  const Training odd = odd_training(SgdOptions{});
  const auto program = started(*gpu(), odd, persistent);
  EXPECT_EQ(program->facts().launches, 1);
  const std::int64_t waits = cuda_host::calls_of("cudaStreamSynchronize");
  const std::int64_t executed = cuda_host::executed();
  program->enqueue(0, 3);
  EXPECT_EQ(cuda_host::calls_of("cudaStreamSynchronize"), waits);
  program->wait();
  EXPECT_EQ(cuda_host::executed() - executed, 1);
}

TEST(EmulatedPersistentProgram, IsProfiledAndGoesOn) {
  const Training odd = odd_training(AdamWOptions{.learning_rate = 0.01});
  const auto program = started(*gpu(), odd, persistent);
  const Profile profile = program->profile();
  EXPECT_GT(profile.at(OpCategory::product), 0);
  EXPECT_TRUE(profile.contains(OpCategory::launch));
  EXPECT_TRUE(profile.contains(OpCategory::synchronization));
  restart(*program, odd.workload);
  program->enqueue(0, 3);
  EXPECT_NO_THROW(
      verify_state(*program, odd.workload, reference_trajectory(odd.workload, odd.data, 3)));
}

TEST(EmulatedPersistentProgram, HasActivationsOnlyWhereTheyAreKept) {
  const Training odd = odd_training(SgdOptions{});
  const auto program = started(*gpu(), odd, persistent);
  const Id logits = dense_training(odd.workload).front().loss.logits;
  EXPECT_THROW(download(*program, odd.workload, logits), std::invalid_argument);
}

}  // namespace
}  // namespace crossover::test
