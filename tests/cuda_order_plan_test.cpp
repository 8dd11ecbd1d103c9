// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend decides of an order of runs: what counts them, loops, what brings their
// rows, where everything lies. Needs no CUDA.
#include <gtest/gtest.h>

#include <algorithm>

#include "crossover/catalogue.h"
#include "cuda_plans.h"

namespace crossover::test {
namespace {

using cuda::LaunchPlan;
using cuda::make_plan;
using cuda::ProductLaunch;

TEST(CudaPlan, CountsEveryRunOnce) {
  Workload workload = mlp_epoch(13);
  const auto counts = [](const cuda::StepPlan& step) {
    auto advancing = launches_of<cuda::AdvanceLaunch>(step).size();
    for (const auto& loss : launches_of<cuda::LossLaunch>(step)) {
      advancing += loss.advance ? 1 : 0;
    }
    return advancing;
  };
  auto& doubled = workload.steps[0].ops;  // two losses in one step
  const auto loss = std::find_if(doubled.begin(), doubled.end(), [](const Op& op) {
    return std::holds_alternative<SoftmaxCrossEntropy>(op);
  });
  const Op copy_of_loss = *loss;
  doubled.insert(loss, copy_of_loss);
  workload.steps.push_back({{doubled.front()}});  // a step without one
  for (const cuda::StepPlan& step : make_plan(workload, {}, everything).steps) {
    EXPECT_EQ(counts(step), 1);
  }
}

constexpr CompileOptions at_once{.execution = Execution::graph_epoch};

TEST(CudaPlan, RepeatsWhatAnOrderRepeats) {
  const Workload workload = mlp_epoch(13);  // two batches of 5, one of 3
  const LaunchPlan loops = make_plan(workload, at_once, everything);
  EXPECT_EQ(loops.loops.size(), 2);
  EXPECT_FALSE(loops.mode.in_place);
  const LaunchPlan without_loops =
      make_plan(workload, at_once, everything, cuda::any_convolution, {}, /*loops=*/false);
  EXPECT_TRUE(without_loops.loops.empty());
  EXPECT_TRUE(without_loops.mode.in_place);
  const std::int64_t launches = count_launches(workload, without_loops);
  EXPECT_EQ(launches, count_launches(workload, make_plan(workload, {}, everything)));
  EXPECT_EQ(count_graph_nodes(workload, without_loops), launches);
  constexpr std::int64_t runs = 3;
  EXPECT_EQ(count_launches(workload, loops), launches + runs) << "each run gathers its rows";
  constexpr std::int64_t steps = 2;
  EXPECT_EQ(count_graph_nodes(workload, loops), steps * (launches / runs + 1) + 2);
  const auto loops_of = [](const Workload& of) {
    return make_plan(of, at_once, everything).loops.size();
  };
  EXPECT_EQ(loops_of(mlp_epoch(5)), 0) << "nothing to repeat";
  Workload no_rows = workload;  // which a loop's end is found beside
  no_rows.steps.push_back({{Update{}}});
  EXPECT_EQ(loops_of(no_rows), 0);
}

TEST(CudaPlan, GathersInTheLargestUnitsThatFit) {
  struct Case {
    std::int64_t features, rows;
    std::vector<std::int64_t> units;  ///< of rows and labels, step by step
  };
  // Batches of 5 rows and a last one; labels of 4 bytes.
  for (const Case& c : {Case{4, 10, {16, 4}}, Case{3, 10, {4, 4}}, Case{4, 12, {16, 4, 16, 8}},
                        Case{2, 9, {8, 4, 8, 4}}}) {
    const LaunchPlan plan = make_plan(epoch(mlp("m", {c.features, 2}, Activation::relu), c.rows),
                                      {.execution = Execution::graph}, everything);
    std::vector<std::int64_t> units;
    for (const cuda::StepPlan& step : plan.steps) {
      for (const cuda::StagedInput& input : step.inputs) {
        units.push_back(input.unit);
      }
    }
    EXPECT_EQ(units, c.units) << c.features;
  }
}

TEST(CudaPlan, CountsRunsWhoseRowsItGathersWithoutALossToDoIt) {
  OneOp one;
  const Id data = one.tensor("data", {6, 4}, Role::data);
  const Id x = one.tensor("x", {2, 4}, Role::input);
  one.workload.tensors[static_cast<std::size_t>(x)].source = data;
  one.operation(Activate{.x = x, .y = one.tensor("y", {2, 4})});
  one.workload.order = {{.first_row = 0}, {.first_row = 2}, {.first_row = 4}};
  EXPECT_EQ(cuda::launches_of<cuda::AdvanceLaunch>(make_plan(one.workload, {}, everything)).size(),
            0);
  EXPECT_EQ(
      cuda::launches_of<cuda::AdvanceLaunch>(make_plan(one.workload, at_once, everything)).size(),
      1);
}

/// What is read from there, networks that train right in every mode show (EmulatedMode).
TEST(CudaPlan, StagesWhatDoesNotLieInPlace) {
  struct Where {
    Placement placement;
    Execution execution;
    int buffers;
  };
  const Workload workload = mlp_epoch(13);
  for (const Where& where : {Where{Placement::resident, Execution::eager, 0},
                             Where{Placement::resident, Execution::graph, 1},
                             Where{Placement::resident, Execution::graph_epoch, 1},
                             Where{Placement::pageable, Execution::eager, 1},
                             Where{Placement::pinned, Execution::graph, 1},
                             Where{Placement::pinned_async, Execution::eager, 2}}) {
    const LaunchPlan plan = make_plan(
        workload, {.execution = where.execution, .placement = where.placement}, everything);
    EXPECT_EQ(plan.mode.buffers, where.buffers);
    const bool resident = where.placement == Placement::resident;
    EXPECT_EQ(plan.host_bytes > 0, !resident);
    for (const Id id : tensors_of(workload, Role::data)) {
      EXPECT_EQ(plan[id].offset >= 0, resident);
      EXPECT_EQ(plan[id].host_offset >= 0, !resident);
    }
  }
}

}  // namespace
}  // namespace crossover::test
