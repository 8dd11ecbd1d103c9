// SPDX-License-Identifier: Apache-2.0
// What the kernel that trains a whole order refuses, and what it does with less memory.
#include <gmock/gmock.h>

#include "crossover/catalogue.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "persistent_crews.h"

namespace crossover::test {
namespace {

using testing::HasSubstr;

std::string refusal(const Workload& workload, const CompileOptions& options = persistent) {
  return message_of<Unsupported>([&] { static_cast<void>(gpu()->plan(workload, options)); });
}

TEST(EmulatedPersistentLimit, IsToldInKilobytes) {
  const Task task = find_model("disc-8");
  const Workload workload =
      fuse(training_epoch(task.model, {.rows = 100, .batch = 100, .optimizer = task.optimizer}));
  cuda_host::device().cache_bytes = 512 << 10U;
  const std::string limits =
      "; a block of this GPU has 227 KB of shared memory, and all blocks half of 512 KB of cache";
  EXPECT_EQ(refusal(workload),
            "one kernel for the whole order needs 420 KB for this network at batch 100 in each "
            "block of a cluster of 8" +
                limits);
  cuda_host::device().major = 8;
  EXPECT_EQ(refusal(workload),
            "one kernel for the whole order needs 500 KB for this network at batch 100" + limits);
}

TEST(EmulatedPersistentLimit, OfADisplayOrAVirtualGpuIsTold) {
  const Training odd = odd_training(SgdOptions{});
  cuda_host::device().launches_cooperative = false;
  EXPECT_EQ(refusal(odd.workload), "") << "one block does not wait for others";
  ASSERT_TRUE(leave_room_for(all_blocks, odd.workload));
  EXPECT_THAT(refusal(odd.workload), HasSubstr("needs all multiprocessors for this network, and"));
  cuda_host::device().has_display = true;
  EXPECT_THAT(refusal(odd.workload), HasSubstr("may run longer than the driver lets it"));
}

/// A driver that finds room for smaller clusters alone gets those, or one block.
TEST(EmulatedPersistentLimit, OfClustersIsAskedOfTheDriver) {
  const Task task = find_model("disc-6");
  const Training training{
      fuse(training_epoch(task.model, {.rows = 50, .batch = 50, .optimizer = task.optimizer})),
      task.generate(50)};
  const Trajectory expected = reference_trajectory(training.workload, training.data, 1);
  const auto calls_of_run = [&](auto change) {
    cuda_host::reset();
    change(cuda_host::device());
    const auto program = started(*gpu(), training, persistent);
    program->enqueue(0, 1);
    EXPECT_NO_THROW(verify_state(*program, training.workload, expected));
    return cuda_host::calls_of("cudaOccupancyMaxActiveClusters");
  };
  EXPECT_EQ(calls_of_run([](auto& /*device*/) {}), 3) << "of 2, 4 and 8";
  EXPECT_EQ(calls_of_run([](auto& device) { device.cluster_blocks = 2; }), 2);
  EXPECT_EQ(calls_of_run([](auto& device) { device.code = 80; }), 0)
      << "code of before there were clusters is empty";
  EXPECT_EQ(calls_of_run([](auto& device) { device.cluster_blocks = 1; }), 1);
  EXPECT_EQ(calls_of_run([](auto& device) { device.major = 8; }), 0) << "not even asked";
}

TEST(EmulatedPersistentLimit, OfALaunchThatIsRefusedIsTold) {
  const Training odd = odd_training(SgdOptions{});
  ASSERT_TRUE(leave_room_for(cluster_of(8, 64), odd.workload));
  const auto program = started(*gpu(), odd, persistent);
  cuda_host::device().cluster_blocks = 4;
  EXPECT_THAT(message_of<std::runtime_error>([&] { program->enqueue(0, 3); }),
              HasSubstr("invalid cluster size"));
}

/// Both launch the same kernel, whose limit the later one sets.
TEST(EmulatedPersistentLimit, OfALaterProgramLeavesAnEarlierOneItsMemory) {
  const auto trained_by = [](const std::string& name, Program* beside) {
    const Task task = find_model(name);
    const Training training{
        fuse(training_epoch(task.model, {.rows = 50, .batch = 50, .optimizer = task.optimizer})),
        task.generate(50)};
    cuda_host::device().cluster_blocks = 1;
    auto program = started(*gpu(), training, persistent);
    for (Program* each : {beside, program.get()}) {
      if (each != nullptr) {
        each->enqueue(0, 1);
        each->wait();
      }
    }
    return program;
  };
  const auto larger = trained_by("disc-6", nullptr);
  EXPECT_NO_THROW(trained_by("disc-2", larger.get()));
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
    cuda_host::device().cluster_blocks = 1;
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
