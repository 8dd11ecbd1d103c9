// SPDX-License-Identifier: Apache-2.0
#include "../src/cuda/plan/profile.h"

#include <gtest/gtest.h>

namespace crossover::test {
namespace {

using cuda::combine;
using cuda::RunSeconds;
using cuda::StepSeconds;

/// Ten steps that compute for 3 s each.
RunSeconds ten_steps(double host, double copy = 0) {
  return {.steps = {{.runs = 10,
                     .device = {{OpCategory::product, 2}, {OpCategory::update, 1}},
                     .copy = copy,
                     .host = host}},
          .wait = 0.5};
}

TEST(CudaProfile, LaunchesHideBehindALongComputation) {
  Profile profile = combine(ten_steps(2), Placement::resident, false);
  EXPECT_DOUBLE_EQ(profile[OpCategory::product], 20);
  EXPECT_DOUBLE_EQ(profile[OpCategory::update], 10);
  EXPECT_DOUBLE_EQ(profile[OpCategory::launch], 0);
  EXPECT_DOUBLE_EQ(profile[OpCategory::synchronization], 0.5);
}

TEST(CudaProfile, AComputationHidesBehindSlowLaunches) {
  Profile profile = combine(ten_steps(7), Placement::resident, false);
  EXPECT_DOUBLE_EQ(profile[OpCategory::launch], 10 * (7 - 3));
}

TEST(CudaProfile, WaitsAreCountedForEachStepThatWaits) {
  Profile profile = combine(ten_steps(2), Placement::resident, true);
  EXPECT_DOUBLE_EQ(profile[OpCategory::synchronization], 5);
}

TEST(CudaProfile, StepsOfUnlikeBalanceAreSeparateOnlyWhereEachIsWaitedFor) {
  RunSeconds run = ten_steps(2);
  run.steps.push_back({.runs = 1, .device = {{OpCategory::loss, 1}}, .host = 6});
  EXPECT_DOUBLE_EQ(combine(run, Placement::resident, false)[OpCategory::launch], 0);
  EXPECT_DOUBLE_EQ(combine(run, Placement::resident, true)[OpCategory::launch], 5);
}

TEST(CudaProfile, ACopyInLineAddsToTheTime) {
  Profile profile = combine(ten_steps(4, 2), Placement::pinned, false);
  EXPECT_DOUBLE_EQ(profile[OpCategory::copy_to_device], 20);
  EXPECT_DOUBLE_EQ(profile[OpCategory::launch], 0);
}

TEST(CudaProfile, APageableCopyHidesNoLaunch) {
  EXPECT_DOUBLE_EQ(combine(ten_steps(4, 2), Placement::pageable, false)[OpCategory::launch], 10);
}

TEST(CudaProfile, ACopyBesideTheComputationCountsAsFarAsItOutlastsIt) {
  EXPECT_DOUBLE_EQ(
      combine(ten_steps(1, 2), Placement::pinned_async, false)[OpCategory::copy_to_device], 0);
  EXPECT_DOUBLE_EQ(
      combine(ten_steps(1, 5), Placement::pinned_async, false)[OpCategory::copy_to_device], 20);
}

TEST(CudaProfile, OneGraphOfTheWholeOrderIsEnqueuedOnce) {
  RunSeconds run = ten_steps(0);
  run.host_once = 31;
  EXPECT_DOUBLE_EQ(combine(run, Placement::resident, false)[OpCategory::launch], 1);
}

}  // namespace
}  // namespace crossover::test
