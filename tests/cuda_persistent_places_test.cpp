// SPDX-License-Identifier: Apache-2.0
// What one multiprocessor or each of a cluster holds from barrier to barrier. Needs no CUDA.
#include <algorithm>

#include "cuda_persistent_walk.h"

namespace crossover::test {
namespace {

using cuda::OnChip;
using cuda::OnChipStep;
using cuda::PersistentPlan;
using cuda::TeamKind;

/// A network, the kilobytes of a block, the blocks of the largest cluster.
struct Place {
  const char* network;
  std::int64_t kilobytes;
  int cluster_blocks = 1;
};

class PersistentPlaces : public testing::TestWithParam<Place> {};

TEST_P(PersistentPlaces, LetNothingBeOverwrittenThatIsStillRead) {
  const auto& [network, kilobytes, cluster_blocks] = GetParam();
  if (thinned() && kilobytes > 100) {
    GTEST_SKIP() << "walks through every number: without sanitizers, or with CROSSOVER_TEST_ALL";
  }
  const OnChip chip{.shared_bytes = kilobytes << 10U, .cluster_blocks = cluster_blocks};
  const PersistentPlan plan = persistent_plan(network, chip);
  EXPECT_EQ(plan.bytes <= chip.shared_bytes, plan.is_on_chip());
  EXPECT_EQ(plan.team == TeamKind::cluster, cluster_blocks > 1);
  Walk walk(plan);
  for (const OnChipStep& step : plan.steps) {
    walk.step(step);
    walk.step(step);
    ASSERT_FALSE(HasFatalFailure());
  }
}

// Sizes of shared memory that GPUs have, but for those that make disc-6 take the other phases and
// disc-5 a cluster of two.
INSTANTIATE_TEST_SUITE_P(
    Cuda, PersistentPlaces,
    testing::Values(Place{"disc-2", 99}, Place{"disc-3", 64}, Place{"disc-5", 99},
                    Place{"disc-6", 110}, Place{"disc-6", 163}, Place{"disc-7", 227},
                    Place{"heart", 64}, Place{"disc-8", 227}, Place{"heart", 1},
                    Place{"disc-5", 34, 2}, Place{"disc-6", 99, 4}, Place{"disc-7", 227, 8}),
    [](const auto& parameters) {
      const Place& place = parameters.param;
      std::string name = place.network;
      std::replace(name.begin(), name.end(), '-', '_');
      return name + "_in_" + std::to_string(place.kilobytes) +
             (place.cluster_blocks > 1 ? "_of_" + std::to_string(place.cluster_blocks) : "");
    });

TEST(PersistentPlan, HasTwoBarriersALayerAndOneMoreWherePhasesOverlap) {
  const auto barriers = [](const PersistentPlan& plan) {
    Walk walk(plan);
    walk.step(plan.steps.front());
    return walk.barriers;
  };
  const OnChip alone{.cluster_blocks = 1};
  EXPECT_EQ(barriers(persistent_plan("disc-2", alone)), 2 * 2 + 1);
  EXPECT_EQ(barriers(persistent_plan("disc-6", alone)), 2 * 6 + 1);
  EXPECT_EQ(barriers(persistent_plan("disc-7", alone)), 7 + 1 + 2 * 7 - 1)
      << "too large to overlap them";
}

TEST(PersistentPlan, HasTwoBarriersOfAllInACluster) {
  const PersistentPlan plan = persistent_plan("disc-7");
  ASSERT_EQ(plan.team, TeamKind::cluster);
  Walk walk(plan);
  walk.step(plan.steps.front());
  EXPECT_EQ(walk.barriers, 2 * 7 + 2);
  EXPECT_EQ(walk.exchanges, 2);
}

}  // namespace
}  // namespace crossover::test
