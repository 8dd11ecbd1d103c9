// SPDX-License-Identifier: Apache-2.0
// The kernel that trains a whole order, on the emulation: golden runs by blocks of several sizes,
// each operation against the reference, and what does not fit.
#include <gmock/gmock.h>

#include <cstdlib>

#include "crossover/backend.h"
#include "crossover/catalogue.h"
#include "crossover/dense_training.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "golden.h"
#include "support.h"

namespace crossover::test {
namespace {

using testing::HasSubstr;

constexpr CompileOptions persistent{.execution = Execution::persistent};

std::string refusal(const Workload& workload, const CompileOptions& options = persistent) {
  try {
    static_cast<void>(gpu()->plan(workload, options));
  } catch (const Unsupported& error) {
    return error.what();
  }
  return "";
}

/// A full and a short batch, extents that are no multiples of four, and more of a batch than a warp
/// has lanes.
Training odd_training(const Optimizer& optimizer, bool update_fused = false) {
  const Model model = mlp("odd", {5, 18, 7, 3}, Activation::sigmoid);
  Workload workload =
      fuse(training_epoch(model, {.rows = 90, .batch = 37, .optimizer = optimizer}));
  if (update_fused) {
    workload = fuse_update(std::move(workload));
  }
  return {std::move(workload), uniform_rows({5}, 90, 3)};
}

// ---- against the reference
// -----------------------------------------------------------------------------------

/// So that no network fits on one multiprocessor: all of them train it.
void leave_no_shared_memory() { cuda_host::device().shared_bytes = 0; }

/// The case, its form, and the threads that a block may have at most: less than 0 of each of
/// several.
class EmulatedPersistent : public testing::TestWithParam<std::tuple<Golden, Form, int>> {};

TEST_P(EmulatedPersistent, Trajectory) {
  const auto& [golden, form, threads] = GetParam();
  const Training training = golden.training(form);
  if (flops(golden, training.workload) > 3e8) {
    GTEST_SKIP() << "too slow on the emulation";
  }
  cuda_host::device().threads = std::abs(threads);
  if (threads < 0) {
    leave_no_shared_memory();
  }
  try {
    expect_golden(golden, training, *started(*gpu(), training, persistent));
  } catch (const Unsupported& error) {
    GTEST_SKIP() << error.what();
  }
}

std::string name_of_case(const testing::TestParamInfo<std::tuple<Golden, Form, int>>& info) {
  const auto& [golden, form, threads] = info.param;
  return label(golden) + "_" + label(form) + (threads < 0 ? "_blocks_of_" : "_one_block_of_") +
         std::to_string(std::abs(threads));
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedPersistent,
                         testing::Combine(testing::ValuesIn(golden_mlps()),
                                          testing::Values(Form::fused, Form::update_fused),
                                          testing::Values(32, 128, 512, -64)),
                         name_of_case);

/// The largest that fits, a few steps: the products' large tiles.
TEST(EmulatedPersistentTraining, OfDisc7IsVerified) {
  const Task task = find_model("disc-7");
  const TrainingOptions options{.rows = 250, .batch = 100, .optimizer = task.optimizer};
  const Training training{fuse(training_epoch(task.model, options)), task.generate(250)};
  const auto program = started(*gpu(), training, persistent);
  EXPECT_NO_THROW(verify(*program, training.workload,
                         reference_trajectory(training.workload, training.data, 3)));
}

/// Larger than a multiprocessor's shared memory.
TEST(EmulatedPersistentTraining, OfDisc8OnAllMultiprocessorsIsVerified) {
  const Task task = find_model("disc-8");
  const TrainingOptions options{.rows = 130, .batch = 100, .optimizer = task.optimizer};
  const Training training{fuse(training_epoch(task.model, options)), task.generate(130)};
  cuda_host::device().cache_bytes = 2 << 20U;
  const auto program = started(*gpu(), training, persistent);
  EXPECT_EQ(program->launches(), 1);
  EXPECT_NO_THROW(verify(*program, training.workload,
                         reference_trajectory(training.workload, training.data, 2)));
}

class EmulatedPersistentOptimizer : public testing::TestWithParam<int> {
 protected:
  static Training training() {
    return GetParam() == 0   ? odd_training(SgdOptions{})
           : GetParam() == 1 ? odd_training(SgdOptions{}, true)
                             : odd_training(AdamWOptions{.learning_rate = 0.01});
  }
};

TEST_P(EmulatedPersistentOptimizer, IsVerifiedInWhateverPieces) {
  const Training odd = training();
  const Trajectory expected = reference_trajectory(odd.workload, odd.data, 3);
  for (const int threads : {32, 64, 256, 512, -32, -64}) {
    cuda_host::reset(static_cast<std::uint64_t>(std::abs(threads)));
    cuda_host::device().threads = std::abs(threads);
    if (threads < 0) {
      leave_no_shared_memory();
    }
    const auto program = started(*gpu(), odd, persistent);
    program->enqueue(0, 3);
    EXPECT_NO_THROW(verify_state(*program, odd.workload, expected)) << threads;
    restart(*program, odd.workload);
    program->enqueue(0, 1);
    program->enqueue(1, 2);
    EXPECT_NO_THROW(verify_state(*program, odd.workload, expected)) << threads << " in parts";
  }
}

TEST_P(EmulatedPersistentOptimizer, WritesWhatEachOperationDoesWhereItIsKept) {
  const Training odd = training();
  CompileOptions options = persistent;
  options.keep_activations = true;
  for (const bool on_chip : {true, false}) {
    cuda_host::reset();
    if (!on_chip) {
      leave_no_shared_memory();
    }
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
TEST_P(EmulatedPersistentOptimizer, RepeatsToTheBit) {
  const Training odd = training();
  std::vector<std::vector<double>> results;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    cuda_host::reset(seed);
    if (seed > 2) {
      leave_no_shared_memory();
    }
    const auto program = started(*gpu(), odd, persistent);
    program->enqueue(0, 3);
    std::vector<double> all = download(*program, odd.workload, find(odd.workload, "loss"));
    for (const Id id : tensors_of(odd.workload, Role::parameter)) {
      const std::vector<double> values = download(*program, odd.workload, id);
      all.insert(all.end(), values.begin(), values.end());
    }
    results.push_back(all);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[2], results[3]) << "on all multiprocessors";
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedPersistentOptimizer, testing::Values(0, 1, 2),
                         [](const auto& parameters) {
                           return parameters.param == 0   ? "sgd"
                                  : parameters.param == 1 ? "update_in_place"
                                                          : "adamw";
                         });

// ---- what a Program tells
// -----------------------------------------------------------------------------------

TEST(EmulatedPersistentProgram, IsOneLaunchAndWaitsForNothing) {
  const Training odd = odd_training(SgdOptions{});
  const auto program = started(*gpu(), odd, persistent);
  EXPECT_EQ(program->launches(), 1);
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

// ---- what it refuses, and what it does with less memory
// -----------------------------------------------------------------------------------

TEST(EmulatedPersistentLimit, IsToldInKilobytes) {
  const Task task = find_model("disc-8");
  const Workload workload =
      fuse(training_epoch(task.model, {.rows = 100, .batch = 100, .optimizer = task.optimizer}));
  cuda_host::device().cache_bytes = 512 << 10U;
  EXPECT_THAT(refusal(workload),
              testing::MatchesRegex("one kernel for the whole order needs [0-9]+ KB for this "
                                    "network at batch 100; a block of this GPU has 227 KB of "
                                    "shared memory, and all blocks half of 512 KB of cache"));
}

/// With less shared memory the phases of a step overlap less, and then it does not fit.
TEST(EmulatedPersistentLimit, TakesTheOtherOrderOfPhasesBeforeItRefuses) {
  const Training odd = odd_training(SgdOptions{});
  const Trajectory expected = reference_trajectory(odd.workload, odd.data, 3);
  int ran = 0;
  bool refused = false;
  for (std::size_t bytes = std::size_t{16} << 10U; bytes > 1024 && !refused; bytes -= 256) {
    cuda_host::reset(bytes);
    cuda_host::device().shared_bytes = bytes;
    cuda_host::device().cache_bytes = 0;
    refused = !refusal(odd.workload).empty();
    if (!refused && ran++ % 8 == 0) {
      const auto program = started(*gpu(), odd, persistent);
      program->enqueue(0, 3);
      EXPECT_NO_THROW(verify_state(*program, odd.workload, expected)) << bytes;
    }
  }
  EXPECT_GT(ran, 0);
  EXPECT_TRUE(refused);
}

TEST(EmulatedPersistentLimit, OfOtherOptionsAndNetworksIsTold) {
  const Workload workload = odd_training(SgdOptions{}).workload;
  const auto with = [](auto change) {
    CompileOptions options = persistent;
    change(options);
    return options;
  };
  EXPECT_EQ(refusal(workload), "");
  EXPECT_THAT(refusal(workload, with([](auto& o) { o.precision = Precision::tf32; })),
              HasSubstr("computes in f32 alone, not in tf32"));
  EXPECT_THAT(refusal(workload, with([](auto& o) { o.placement = Placement::pinned; })),
              HasSubstr("must be resident"));
  EXPECT_THAT(refusal(workload, with([](auto& o) { o.loss_every_step = true; })),
              HasSubstr("shows its losses at its end"));
  EXPECT_THAT(refusal(fuse(training_epoch(residual_model(),
                                          {.rows = 5, .batch = 5, .optimizer = SgdOptions{}}))),
              HasSubstr("takes networks of Linear layers alone"));
  const std::vector<std::int64_t> widths(14, 3);
  EXPECT_THAT(refusal(fuse(training_epoch(mlp("deep", widths, Activation::relu),
                                          {.rows = 5, .batch = 5, .optimizer = SgdOptions{}}))),
              HasSubstr("takes at most 12 layers, not 13"));
}

}  // namespace
}  // namespace crossover::test
