// SPDX-License-Identifier: Apache-2.0
// What CompileOptions mean for a run on the GPU.
#include "../src/cuda/planning/run_mode.h"

#include <gtest/gtest.h>

namespace crossover::test {
namespace {

using cuda::choose_run_mode;
using cuda::RunMode;

constexpr Placement streamed[] = {Placement::pageable, Placement::pinned, Placement::pinned_async};

TEST(CudaRunMode, ReadsResidentRowsInPlaceWhereNoStepsGraphHoldsTheAddress) {
  const RunMode eager = choose_run_mode({});
  EXPECT_TRUE(eager.in_place);
  EXPECT_EQ(eager.buffers, 0);
  EXPECT_FALSE(eager.gathers());
  const RunMode graph = choose_run_mode({.execution = Execution::graph});
  EXPECT_FALSE(graph.in_place);
  EXPECT_EQ(graph.buffers, 1);
  EXPECT_TRUE(graph.gathers());
  const RunMode epoch = choose_run_mode({.execution = Execution::graph_epoch});
  EXPECT_TRUE(epoch.in_place);
  EXPECT_EQ(epoch.buffers, 1) << "for a part of the order";
  EXPECT_TRUE(epoch.gathers());
}

TEST(CudaRunMode, StagesWhatComesFromTheHost) {
  for (const Placement placement : streamed) {
    for (const Execution execution : {Execution::eager, Execution::graph, Execution::graph_epoch}) {
      const RunMode mode = choose_run_mode({.execution = execution, .placement = placement});
      EXPECT_FALSE(mode.in_place);
      EXPECT_EQ(mode.buffers, placement == Placement::pinned_async ? 2 : 1);
      EXPECT_FALSE(mode.gathers());
    }
  }
}

TEST(CudaRunMode, MakesOneGraphOfAnOrderOnlyWhereNothingComesBetween) {
  const auto execution = [](Placement placement, bool loss_every_step) {
    return choose_run_mode({.execution = Execution::graph_epoch,
                            .placement = placement,
                            .loss_every_step = loss_every_step})
        .execution;
  };
  EXPECT_EQ(execution(Placement::resident, false), Execution::graph_epoch);
  EXPECT_EQ(execution(Placement::resident, true), Execution::graph);
  for (const Placement placement : streamed) {
    EXPECT_EQ(execution(placement, false), Execution::graph);
  }
}

TEST(CudaRunMode, StagesNothingForAKernelThatReadsTheDataSet) {
  const RunMode mode = choose_run_mode({.execution = Execution::persistent});
  EXPECT_TRUE(mode.in_place);
  EXPECT_EQ(mode.buffers, 0);
}

TEST(CudaRunMode, IsNoneOfTheCpusExecutions) {
  EXPECT_THROW(choose_run_mode({.execution = Execution::fused}), Unsupported);
  EXPECT_THROW(choose_run_mode({.execution = Execution::automatic}), Unsupported);
}

}  // namespace
}  // namespace crossover::test
