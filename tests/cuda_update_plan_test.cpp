// SPDX-License-Identifier: Apache-2.0
// Where the CUDA backend updates weights in the product that computes their gradient. Needs no
// CUDA.
#include <gtest/gtest.h>

#include <algorithm>

#include "../src/cuda/planning/plan.h"
#include "crossover/backend.h"
#include "support.h"

namespace crossover::test {
namespace {

/// A layer of 2^20 weights between two smaller ones.
Workload of_a_large_layer(Precision precision = Precision::f32,
                          const Optimizer& optimizer = SgdOptions{}, std::int64_t accumulate = 1) {
  return training_epoch(mlp("m", {8, 1024, 1024, 2}, Activation::relu), {.rows = 10,
                                                                         .batch = 5,
                                                                         .optimizer = optimizer,
                                                                         .accumulate = accumulate,
                                                                         .precision = precision});
}

Workload optimize_for_cuda(const Workload& workload, const CompileOptions& options) {
  return make_planned_gpu()->optimize(workload, options);
}

/// Layers of the first step whose weights their gradient's product updates, from the last one on.
std::vector<bool> updated_in_products(const Workload& workload) {
  std::vector<bool> all;
  for (const Op& op : workload.steps[0].ops) {
    if (const auto* gradient = std::get_if<LinearGrad>(&op)) {
      all.push_back(gradient->dw == gradient->w);
    }
  }
  return all;
}

TEST(CudaUpdate, IsPartOfTheProductsOfLargeLayers) {
  for (const Execution execution : {Execution::eager, Execution::graph, Execution::graph_epoch}) {
    EXPECT_EQ(updated_in_products(optimize_for_cuda(of_a_large_layer(), {.execution = execution})),
              (std::vector<bool>{false, true, false}));
  }
}

TEST(CudaUpdate, IsTheOptimizersElsewhere) {
  const std::vector<bool> nowhere(3, false);
  EXPECT_EQ(updated_in_products(
                optimize_for_cuda(of_a_large_layer(), {.execution = Execution::persistent})),
            nowhere);
  EXPECT_EQ(updated_in_products(optimize_for_cuda(of_a_large_layer(Precision::bf16),
                                                  {.precision = Precision::bf16})),
            nowhere);
  EXPECT_EQ(
      updated_in_products(optimize_for_cuda(of_a_large_layer(Precision::f32, AdamWOptions{}), {})),
      nowhere);
  EXPECT_EQ(
      updated_in_products(optimize_for_cuda(of_a_large_layer(Precision::f32, SgdOptions{}, 2), {})),
      nowhere);
}

TEST(CudaUpdate, ReadsAndWritesTheWeightsAlone) {
  const Workload workload = optimize_for_cuda(of_a_large_layer(), {});
  const cuda::LaunchPlan plan =
      cuda::make_plan(workload, {}, [](const cuda::ProductForm& /*form*/) { return true; });
  const auto products = cuda::launches_of<cuda::ProductLaunch>(plan);
  const std::vector<Id> parameters = tensors_of(workload, Role::parameter);
  const Id w = parameters[2];  // of the second layer: weights, then a bias
  const Id bias = parameters[3];
  const auto updating = std::find_if(products.begin(), products.end(),
                                     [](const auto& product) { return product.form.accumulate; });
  ASSERT_NE(updating, products.end());
  EXPECT_EQ(updating->d.offset, plan[w].offset);
  const auto reads_it = [&](const auto& product) { return product.a.offset == plan[w].offset; };
  EXPECT_TRUE(std::none_of(updating, products.end(), reads_it));  // dx does, before
  EXPECT_EQ(std::count_if(products.begin(), updating, reads_it), 2);
  // The bias gradient is a launch of its own, which adds to the bias.
  const auto sums = cuda::launches_of<cuda::ColumnSumsLaunch>(plan);
  ASSERT_EQ(sums.size(), 1);
  EXPECT_TRUE(sums[0].accumulate);
  EXPECT_EQ(sums[0].sums.offset, plan[bias].offset);
  // The optimizer is left with the other layers.
  std::int64_t updated = 0;
  for (const auto& launch : cuda::launches_of<cuda::SgdLaunch>(plan)) {
    for (const cuda::UpdateSpan<cuda::Planned>& span : launch.spans) {
      updated += span.count;
    }
  }
  EXPECT_LT(updated, 1 << 16);
}

}  // namespace
}  // namespace crossover::test
