// SPDX-License-Identifier: Apache-2.0
// Which copies of a network the CUDA backend plans as one, and where they lie. Needs no CUDA.
#include <gtest/gtest.h>

#include "crossover/catalogue.h"
#include "cuda_plans.h"

namespace crossover::test {
namespace {

using cuda::Epilogue;
using cuda::LaunchPlan;
using cuda::Networks;
using cuda::ProductForm;
using cuda::ProductLaunch;

LaunchPlan planned(const Workload& workload, CompileOptions options,
                   const cuda::Supports& supports = everything) {
  return cuda::make_plan(workload, options, supports);
}

TEST(CudaNetworks, HaveTheLaunchesOfOneOnBlocksOneBehindAnother) {
  for (const Execution execution : {Execution::eager, Execution::graph, Execution::graph_epoch}) {
    const LaunchPlan one = planned(mlp_epoch(), {.execution = execution});
    const LaunchPlan all = planned(mlp_epoch(), {.execution = execution, .copies = 64});
    EXPECT_EQ(count_launches(mlp_epoch(), all), count_launches(mlp_epoch(), one));
    EXPECT_EQ(all.networks, (Networks{64, one.workspace}));
    EXPECT_EQ(all.workspace, 64 * one.workspace);
    EXPECT_EQ(all.bytes - all.workspace, one.bytes - one.workspace);
    for (const ProductLaunch& product : cuda::launches_of<ProductLaunch>(all)) {
      EXPECT_EQ(product.form.networks, all.networks);
    }
    for (const ProductLaunch& product : cuda::launches_of<ProductLaunch>(of_one_network(all))) {
      EXPECT_EQ(product.form.networks, Networks{});
    }
  }
}

TEST(CudaNetworks, AreDenseOnesOnRowsThatLieThere) {
  const auto networks = [](const std::string& name, CompileOptions options = {}) {
    const Task task = find_model(name);
    options.copies = std::max<std::int64_t>(options.copies, 2);
    return planned(fuse(training_epoch(task.model, {.rows = 8, .batch = 4})), options)
        .networks.count;
  };
  for (const char* taken : {"disc-3", "policy", "surrogate", "fcn-r"}) {
    EXPECT_EQ(networks(taken), 2) << taken;
  }
  for (const char* not_taken : {"lenet-5", "lstm"}) {
    EXPECT_EQ(networks(not_taken), 1) << not_taken;
  }
  EXPECT_EQ(networks("disc-3", {.placement = Placement::pinned}), 1);
  EXPECT_EQ(networks("disc-3", {.loss_every_step = true}), 1);
  EXPECT_EQ(networks("disc-3", {.copies = Networks::most}), Networks::most);
  EXPECT_EQ(networks("disc-3", {.copies = Networks::most + 1}), 1);
}

/// It may have other epilogues for several products than for one.
TEST(CudaNetworks, DoWithoutEpiloguesThatTheLibraryLacksForThem) {
  for (const bool of_several : {true, false}) {
    const auto supports = [=](const ProductForm& form) {
      return form.epilogue == Epilogue::none || (form.networks.count > 1) != of_several;
    };
    const LaunchPlan plan = planned(mlp_epoch(), {.copies = 3}, supports);
    EXPECT_EQ(plan.networks.count, 3);
    for (const ProductLaunch& product : cuda::launches_of<ProductLaunch>(plan)) {
      EXPECT_EQ(product.form.epilogue, Epilogue::none);
    }
  }
  const auto of_one = [](const ProductForm& form) { return form.networks.count == 1; };
  EXPECT_EQ(planned(mlp_epoch(), {.copies = 3}, of_one).networks.count, 1);
}

}  // namespace
}  // namespace crossover::test
