// SPDX-License-Identifier: Apache-2.0
// Who trains a network in one kernel, and how its jobs are shared out. Needs no CUDA.
#include <gmock/gmock.h>

#include "crossover/backend.h"
#include "cuda_persistent_walk.h"

namespace crossover::test {
namespace {

using cuda::Job;
using cuda::OnChip;
using cuda::OnChipStep;
using cuda::PersistentPlan;
using cuda::TeamKind;

constexpr CompileOptions persistent{.execution = Execution::persistent};

/// "1", "8" or "all": of multiprocessors.
std::string team_of(const std::string& network, const OnChip& chip) {
  const PersistentPlan plan = persistent_plan(network, chip);
  EXPECT_EQ(plan.is_on_chip(), plan.bytes <= chip.shared_bytes) << network;
  EXPECT_EQ(plan.team == TeamKind::block, plan.blocks == 1) << network;
  return plan.team == TeamKind::grid ? "all" : std::to_string(plan.blocks);
}

TEST(PersistentPlan, TakesOneMultiprocessorUpToDisc7AndAllUpToDisc11WithoutClusters) {
  const OnChip chip{.cluster_blocks = 1};
  for (const char* network :
       {"disc-2", "disc-3", "disc-4", "disc-5", "disc-6", "disc-7", "heart"}) {
    EXPECT_EQ(team_of(network, chip), "1") << network;
  }
  for (const char* network : {"disc-7x1.125", "disc-8", "disc-9", "disc-10", "disc-11"}) {
    EXPECT_EQ(team_of(network, chip), "all") << network;
  }
}

/// Where meeting takes more than what the others compute, one block trains alone.
TEST(PersistentPlan, TakesAClusterBetweenThose) {
  const OnChip chip;
  for (const char* network : {"disc-2", "disc-3", "heart"}) {
    EXPECT_EQ(team_of(network, chip), "1") << network;
  }
  for (const char* network :
       {"disc-4", "disc-5", "disc-6", "disc-7", "disc-7x1.125", "disc-7x1.25"}) {
    EXPECT_EQ(team_of(network, chip), "8") << network;
  }
  for (const char* network : {"disc-7x1.5", "disc-8", "disc-11"}) {
    EXPECT_EQ(team_of(network, chip), "all") << network;
  }
  const OnChip small{.shared_bytes = 99 << 10};  // of capability 12.0
  EXPECT_EQ(team_of("disc-6", small), "8");
  EXPECT_EQ(team_of("disc-7", small), "all");
}

TEST(PersistentPlan, TakesAllMultiprocessors) {
  for (const int multiprocessors : {58, 108, 148}) {
    EXPECT_EQ(persistent_plan("disc-9", {.multiprocessors = multiprocessors}).blocks,
              multiprocessors);
  }
}

TEST(PersistentPlan, TakesNoLargerClusterThanThereIs) {
  for (const int blocks : {1, 2, 4, 8}) {
    EXPECT_EQ(team_of("disc-7", {.cluster_blocks = blocks}), std::to_string(blocks));
  }
}

/// Each block has all parameters, their gradients once more, and its rows of the batch.
TEST(PersistentPlan, GivesABlockOfAClusterItsRowsAndAllParameters) {
  const PersistentPlan one = persistent_plan("disc-7", {.cluster_blocks = 1});
  const PersistentPlan eight = persistent_plan("disc-7");
  ASSERT_EQ(eight.blocks, 8);
  EXPECT_EQ(eight.places.parameters, one.places.parameters);
  EXPECT_GE(eight.places.gradients, eight.places.parameters);
  EXPECT_EQ(one.places.gradients, 0);
  for (std::size_t l = 0; l < one.layers.size(); ++l) {
    EXPECT_EQ(eight.layers[l].w, one.layers[l].w);
    EXPECT_EQ(eight.layers[l].bias, one.layers[l].bias);
  }
  EXPECT_EQ(one.places.inputs, 100 * cuda::leading_dimension(2));
  EXPECT_EQ(eight.places.inputs, 16 * cuda::leading_dimension(2)) << "13 rows, by fours";
  const auto of_rows = [](const PersistentPlan& plan, int copies) {
    return plan.bytes / std::int64_t{sizeof(float)} - std::int64_t{copies} * plan.places.parameters;
  };
  EXPECT_LT(of_rows(eight, 2), of_rows(one, 1) / 5);
}

TEST(PersistentPlan, CountsItsMultiprocessors) {
  const auto gpu = make_planned_gpu();
  const auto estimate = [&](const char* network) {
    return gpu->estimate(epoch_of(network), persistent);
  };
  const auto multiprocessors = [&](const char* network) {
    return estimate(network).multiprocessors;
  };
  EXPECT_EQ(multiprocessors("disc-2"), 1);
  EXPECT_EQ(multiprocessors("disc-7"), 8);
  EXPECT_EQ(multiprocessors("disc-8"), 0) << "all";
  EXPECT_EQ(estimate("disc-7").launches, 1);
  EXPECT_EQ(estimate("disc-8").launches, 1);
  for (const char* network : {"disc-12", "fcn-r", "alexnet-r", "lstm"}) {
    EXPECT_THAT([&] { static_cast<void>(multiprocessors(network)); },
                testing::Throws<Unsupported>())
        << network;
  }
}

/// Of the same phases of the block, so that eight rows' vectors lie in different banks.
TEST(PersistentPlan, PutsRowsAnOddNumberOfVectorsApart) {
  for (int columns = 1; columns < 300; ++columns) {
    const int next = cuda::leading_dimension(columns);
    EXPECT_GE(next, columns);
    EXPECT_LE(next, columns + 7);
    EXPECT_EQ(next % 8, 4);
  }
}

TEST(PersistentPlan, SplitsEveryProductIntoTilesAndLanesThatTheKernelHas) {
  for (const char* network : {"disc-2", "disc-7", "heart"}) {
    for (const int threads : {32, 512}) {
      const PersistentPlan plan = persistent_plan(network, {.threads = threads});
      EXPECT_LE(plan.threads, threads);
      for (const OnChipStep& step : plan.steps) {
        for (int j = 0; j < step.jobs; ++j) {
          const Job& job = step.job[j];
          EXPECT_TRUE(job.rows == 1 || job.rows == 2 || job.rows == 4);
          EXPECT_TRUE(job.lanes > 0 && job.lanes <= 32 && (job.lanes & (job.lanes - 1)) == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace crossover::test
