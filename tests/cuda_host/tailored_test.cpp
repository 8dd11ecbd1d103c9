// SPDX-License-Identifier: Apache-2.0
// The kernel that is made for one network, on the emulation: for those of tailored.h, on drawn
// data, against the reference.
#include "tailored.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "crossover/backend_over.h"
#include "crossover/catalogue.h"
#include "crossover/dense_training.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "cuda_host.h"
#include "emulated.h"
#include "libraries/kernel_store.h"
#include "plan/persistent.h"

namespace crossover::test {
namespace {

using cuda::KernelRule;

constexpr CompileOptions tailored{.execution = Execution::tailored};
constexpr std::int64_t runs = 3;  // of which the last one has a short batch

Optimizer optimizer_of(KernelRule rule) {
  switch (rule) {
    case KernelRule::momentum:
      return MomentumOptions{};
    case KernelRule::adamw:
      return AdamWOptions{.learning_rate = 0.01};
    default:
      return SgdOptions{};
  }
}

struct Wanted {
  std::int64_t copies = 1;
  bool update_fused = false;
  std::int64_t rows_of_last = 0;  ///< batch, the third; 0: half of one less one
};

/// An epoch of it, or some copies of that. A cluster's blocks have unlike numbers of rows of the
/// last batch.
Training training_of(const cuda::tailored::Shape& shape, const Wanted& wanted = {}) {
  const std::vector<std::int64_t> widths(shape.width, shape.width + shape.layers + 1);
  const Model model = mlp("tailored", widths, shape.activation[0], shape.loss);
  const std::int64_t batch = std::int64_t{shape.batch} * shape.blocks;
  const std::int64_t rows =
      2 * batch + (wanted.rows_of_last > 0 ? wanted.rows_of_last : batch / 2 - 1);
  Workload workload = fuse(training_epoch(model, {.rows = rows,
                                                  .batch = batch,
                                                  .optimizer = optimizer_of(shape.rule),
                                                  .copies = wanted.copies}));
  if (wanted.update_fused) {
    workload = fuse_update(std::move(workload));
  }
  return {std::move(workload), uniform_data(model, rows)};
}

/// One that a cluster of eight trains.
const cuda::tailored::Shape& spread_network() {
  const auto* const found =
      std::find_if(cuda::tailored::networks.begin(), cuda::tailored::networks.end(),
                   [](const cuda::tailored::Shape& of) { return of.blocks == 8; });
  EXPECT_NE(found, cuda::tailored::networks.end());
  return *found;
}

/// On a GPU that has no larger clusters than the network is compiled for.
class EmulatedTailored : public testing::TestWithParam<cuda::tailored::Shape> {
 protected:
  EmulatedTailored() { reset(1); }
  static void reset(std::uint64_t seed) {
    cuda_host::reset(seed);
    cuda_host::device().cluster_blocks = static_cast<unsigned>(GetParam().blocks);
  }
};

TEST_P(EmulatedTailored, IsVerifiedInWhateverPieces) {
  const Training training = training_of(GetParam());
  const Trajectory expected = reference_trajectory(training.workload, training.data, runs);
  const auto program = started(*gpu(), training, tailored);
  EXPECT_EQ(program->facts().launches, 1);
  program->enqueue(0, runs);
  EXPECT_NO_THROW(verify_state(*program, training.workload, expected));
  restart(*program, training.workload);
  program->enqueue(0, 1);
  program->enqueue(1, runs - 1);
  EXPECT_NO_THROW(verify_state(*program, training.workload, expected)) << "in parts";
}

class EmulatedTailoredKept : public EmulatedTailored {};

TEST_P(EmulatedTailoredKept, WritesWhatEachOperationDoes) {
  const Training training = training_of(GetParam());
  CompileOptions options = tailored;
  options.keep_activations = true;
  const auto program = gpu()->compile(training.workload, options);
  set_data(*program, training.workload, training.data);
  Reference reference(training.workload);
  set_data(reference, training.data);
  const OperationVerification result = verify_operations(*program, reference, runs, Precision::f32);
  EXPECT_GE(result.operations, 2 * GetParam().layers);
  EXPECT_GT(result.error, 0);
}

/// What threads do first, and when copies come in, changes no bit.
TEST_P(EmulatedTailored, RepeatsToTheBit) {
  const Training training = training_of(GetParam());
  std::vector<std::vector<double>> results;
  for (const std::uint64_t seed : {1U, 2U}) {
    reset(seed);
    const auto program = started(*gpu(), training, tailored);
    program->enqueue(0, runs);
    std::vector<double> all =
        download(*program, training.workload, find(training.workload, "loss"));
    for (const Id id : tensors_of(training.workload, Role::parameter)) {
      const std::vector<double> values = download(*program, training.workload, id);
      all.insert(all.end(), values.begin(), values.end());
    }
    results.push_back(all);
  }
  EXPECT_EQ(results[0], results[1]);
}

std::string name_of_network(const testing::TestParamInfo<cuda::tailored::Shape>& of_case) {
  const cuda::tailored::Shape& of = of_case.param;
  std::string name = std::to_string(of_case.index) + "_";
  for (int l = 0; l <= of.layers; ++l) {
    name += std::to_string(of.width[l]) + "_";
  }
  return name + name_in(named_activations, of.activation[0]) + "_" + name_of(of.loss) + "_by_" +
         std::to_string(of.lanes) + "_in_" + std::to_string(of.blocks);
}

INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedTailored, testing::ValuesIn(cuda::tailored::networks),
                         name_of_network);
INSTANTIATE_TEST_SUITE_P(Gpu, EmulatedTailoredKept,
                         testing::ValuesIn(cuda::tailored::networks.begin(),
                                           cuda::tailored::networks.begin() +
                                               cuda::tailored::kept_networks),
                         name_of_network);

/// Copies of a network, each trained by a block of its own, in one launch.
TEST(EmulatedTailoredTraining, TrainsCopiesTogether) {
  constexpr std::int64_t copies = 5;
  for (const cuda::tailored::Shape& of : {cuda::tailored::networks[2], spread_network()}) {
    cuda_host::reset();
    cuda_host::device().multiprocessors = 64;
    const Training training = training_of(of, {.copies = copies});
    const auto own = gpu();
    const auto backend = make_copies_backend(*own, copies);
    const auto program = started(*backend, training, tailored);
    EXPECT_EQ(program->facts().launches, 1);
    program->enqueue(0, runs);
    EXPECT_NO_THROW(verify_state(*program, training.workload,
                                 reference_trajectory(training.workload, training.data, runs)));
  }
}

TEST(EmulatedTailoredTraining, UpdatesInPlace) {
  const Training training = training_of(cuda::tailored::networks[0], {.update_fused = true});
  ASSERT_TRUE(dense_training(training.workload).front().updates_in_place());
  const auto program = started(*gpu(), training, tailored);
  program->enqueue(0, runs);
  EXPECT_NO_THROW(verify_state(*program, training.workload,
                               reference_trajectory(training.workload, training.data, runs)));
}

TEST(EmulatedTailoredTraining, LeavesBlocksWithoutRows) {
  const Training training = training_of(spread_network(), {.rows_of_last = 3});
  const auto program = started(*gpu(), training, tailored);
  program->enqueue(0, runs);
  EXPECT_NO_THROW(verify_state(*program, training.workload,
                               reference_trajectory(training.workload, training.data, runs)));
}

TEST(EmulatedTailoredTraining, IsRefusedWhereNothingCompilesIt) {
  const Training training = training_of(cuda::tailored::network({4, 5, 2}, 30));
  EXPECT_THAT([&] { static_cast<void>(gpu()->compile(training.workload, tailored)); },
              testing::ThrowsMessage<Unsupported>(testing::HasSubstr("no NVRTC")));
}

/// Sweeps and `auto` leave it out, as no GPU has confirmed it.
TEST(TailoredPlan, IsForWhoAsksForIt) {
  const Workload workload = training_of(cuda::tailored::networks[0]).workload;
  const auto all = make_planned_gpu()->executions(workload, Precision::f32);
  EXPECT_THAT(all, testing::Contains(Execution::persistent));
  EXPECT_THAT(all, testing::Not(testing::Contains(Execution::tailored)));
}

TEST(TailoredPlan, RefusesWhatDoesNotFit) {
  const auto why = [](const cuda::tailored::Shape& of, const cuda::OnChip& chip) -> std::string {
    try {
      static_cast<void>(cuda::plan_tailored(training_of(of).workload, tailored, chip));
    } catch (const Unsupported& error) {
      return error.what();
    }
    return "";
  };
  const cuda::tailored::Shape disc_6 = cuda::tailored::network({2, 4, 8, 16, 32, 64, 2}, 104);
  EXPECT_EQ(why(disc_6, {}), "");
  EXPECT_EQ(
      why(disc_6, {.shared_bytes = 99 << 10, .cluster_blocks = 1}),
      "a kernel made for the network needs 148 KB at batch 104; a block of this GPU has 99 KB "
      "of shared memory");
  EXPECT_EQ(why(disc_6, {.shared_bytes = 99 << 10}), "") << "by a cluster";
  EXPECT_EQ(why(cuda::tailored::network({2, 110, 110, 2}, 96), {}),
            "a kernel made for the network takes at most 12000 parameters, not 12762");
}

/// Where one is kept that another program may take.
class KernelStore : public testing::Test {
 protected:
  KernelStore() {
    std::filesystem::create_directories(cache_);
    setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
  }
  ~KernelStore() override {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(cache_);
  }

  const std::filesystem::path cache_ =
      testing::TempDir() + "kernel_store_" + std::to_string(getpid());
  const std::filesystem::path folder_ = cache_ / "crossover-kernels";
};

TEST_F(KernelStore, HasWhatWasKeptForThatKeyAlone) {
  const std::string code("code\0of a kernel", 16);
  EXPECT_EQ(cuda::kept_kernel("key"), "");
  cuda::keep_kernel("key", code);
  EXPECT_EQ(cuda::kept_kernel("key"), code);
  EXPECT_EQ(cuda::kept_kernel("ke"), "");
  EXPECT_EQ(std::filesystem::status(folder_).permissions(), std::filesystem::perms::owner_all);
  // A file that came under that name with another key in it.
  std::ofstream(std::filesystem::directory_iterator(folder_)->path()) << "3\nyekcode";
  EXPECT_EQ(cuda::kept_kernel("key"), "");
}

TEST_F(KernelStore, TakesNothingFromWhereOthersMayWrite) {
  cuda::keep_kernel("key", "code");
  std::filesystem::permissions(folder_, std::filesystem::perms::group_write,
                               std::filesystem::perm_options::add);
  EXPECT_EQ(cuda::kept_kernel("key"), "");
  cuda::keep_kernel("other", "code");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  std::filesystem::rename(folder_, cache_ / "elsewhere");
  std::filesystem::permissions(cache_ / "elsewhere", std::filesystem::perms::owner_all);
  std::filesystem::create_symlink(cache_ / "elsewhere", folder_);
  EXPECT_EQ(cuda::kept_kernel("key"), "") << "a link";
}

}  // namespace
}  // namespace crossover::test
