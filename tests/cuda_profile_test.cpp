// SPDX-License-Identifier: Apache-2.0
#include "../src/cuda/profile.h"

#include <gtest/gtest.h>

namespace crossover::test {
namespace {

using cuda::combine;
using cuda::RunSeconds;
using cuda::StepSeconds;

/// Ten steps that compute for 3 s each.
RunSeconds ten_steps(double host, double copy = 0) {
  return {.steps = {{.runs = 10,
                     .device = {{Kind::product, 2}, {Kind::update, 1}},
                     .copy = copy,
                     .host = host}},
          .wait = 0.5};
}

TEST(CudaProfile, LaunchesHideBehindALongComputation) {
  Profile profile = combine(ten_steps(2), Placement::resident, false);
  EXPECT_DOUBLE_EQ(profile[Kind::product], 20);
  EXPECT_DOUBLE_EQ(profile[Kind::update], 10);
  EXPECT_DOUBLE_EQ(profile[Kind::launch], 0);
  EXPECT_DOUBLE_EQ(profile[Kind::synchronization], 0.5);
}

TEST(CudaProfile, AComputationHidesBehindSlowLaunches) {
  Profile profile = combine(ten_steps(7), Placement::resident, false);
  EXPECT_DOUBLE_EQ(profile[Kind::launch], 10 * (7 - 3));
}

TEST(CudaProfile, WaitsAreCountedForEachStepThatWaits) {
  Profile profile = combine(ten_steps(2), Placement::resident, true);
  EXPECT_DOUBLE_EQ(profile[Kind::synchronization], 5);
}

TEST(CudaProfile, StepsOfUnlikeBalanceAreSeparateOnlyWhereEachIsWaitedFor) {
  RunSeconds run = ten_steps(2);
  run.steps.push_back({.runs = 1, .device = {{Kind::loss, 1}}, .host = 6});
  EXPECT_DOUBLE_EQ(combine(run, Placement::resident, false)[Kind::launch], 0);
  EXPECT_DOUBLE_EQ(combine(run, Placement::resident, true)[Kind::launch], 5);
}

TEST(CudaProfile, ACopyInLineAddsToTheTime) {
  Profile profile = combine(ten_steps(4, 2), Placement::pinned, false);
  EXPECT_DOUBLE_EQ(profile[Kind::copy_to_device], 20);
  EXPECT_DOUBLE_EQ(profile[Kind::launch], 0);
}

TEST(CudaProfile, APageableCopyHidesNoLaunch) {
  EXPECT_DOUBLE_EQ(combine(ten_steps(4, 2), Placement::pageable, false)[Kind::launch], 10);
}

TEST(CudaProfile, ACopyBesideTheComputationCountsAsFarAsItOutlastsIt) {
  EXPECT_DOUBLE_EQ(combine(ten_steps(1, 2), Placement::pinned_async, false)[Kind::copy_to_device],
                   0);
  EXPECT_DOUBLE_EQ(combine(ten_steps(1, 5), Placement::pinned_async, false)[Kind::copy_to_device],
                   20);
}

TEST(CudaProfile, OneGraphOfTheWholeOrderIsEnqueuedOnce) {
  RunSeconds run = ten_steps(0);
  run.host_once = 31;
  EXPECT_DOUBLE_EQ(combine(run, Placement::resident, false)[Kind::launch], 1);
}

}  // namespace
}  // namespace crossover::test
