// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend decides of an order of runs: what counts them, loops, what brings their
// rows, where everything lies. Needs no CUDA.
#include <gtest/gtest.h>

#include <algorithm>

#include "crossover/catalogue.h"
#include "crossover/memory.h"
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

struct Where {
  Placement placement;
  Execution execution;
  int buffers;
};

TEST(CudaPlan, StagesWhatDoesNotLieInPlace) {
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
    for (const cuda::StepPlan& step : plan.steps) {
      EXPECT_EQ(step.inputs.size(), where.buffers > 0 ? 2 : 0);  // rows and labels
      for (const cuda::StagedInput& input : step.inputs) {
        EXPECT_LE(input.staged + where.buffers * plan.buffer_bytes, plan.bytes);
      }
      const auto x = launches_of<ProductLaunch>(step)[0].b;
      if (where.buffers > 1) {
        EXPECT_EQ(x.at({.buffer = 1}) - x.at({.buffer = 0}), plan.buffer_bytes);
        EXPECT_EQ(x.at({.first_row = 5, .buffer = 0}), x.at({.first_row = 0, .buffer = 0}));
      }
      if (resident) {
        EXPECT_EQ(x.at({.first_row = 5}) - x.at({}), 5 * 4 * 4);
      }
    }
  }
}

TEST(CudaPlan, KeepsItsPlacesApart) {
  for (const Execution execution : {Execution::eager, Execution::graph}) {
    const Workload workload = mlp_epoch(13);
    const LaunchPlan plan = make_plan(workload, {.execution = execution}, everything);
    std::vector<std::pair<std::int64_t, std::int64_t>> places{
        {plan.row_losses, 5 * 4},
        {plan.factors, cuda::factors_bytes},
        {plan.run, 8},
        {plan.order, plan.mode.gathers() ? plan.runs * 16 : 0},
        {plan.workspace, plan.workspace_bytes}};
    for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
      if (plan.tensors[i].offset >= 0 && workload.tensors[i].role != Role::activation) {
        places.emplace_back(plan.tensors[i].offset, bytes(workload.tensors[i]));
      }
    }
    std::set<std::int64_t> masks;
    for (const cuda::StepPlan& step : plan.steps) {
      for (const auto& product : launches_of<ProductLaunch>(step)) {
        if (product.mask.exists() && masks.insert(product.mask.offset).second) {
          places.emplace_back(product.mask.offset, cuda::mask_bytes(8, 5));
        }
      }
      for (const cuda::StagedInput& input : step.inputs) {
        places.emplace_back(input.staged, input.bytes);
      }
    }
    std::sort(places.begin(), places.end());
    for (std::size_t i = 1; i < places.size(); ++i) {
      EXPECT_LE(places[i - 1].first + places[i - 1].second, places[i].first);
    }
    EXPECT_LE(places.back().first + places.back().second, plan.bytes);
  }
}

}  // namespace
}  // namespace crossover::test
