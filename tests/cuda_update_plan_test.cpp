// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "crossover/backend.h"
#include "cuda_plans.h"

namespace crossover::test {

// ---- How the CUDA backend divides a loss. Needs no CUDA.

namespace {

struct Division {
  std::int64_t rows, classes;
  int threads;  ///< of a row
  bool in_one_block;
};

cuda::LaunchPlan plan_of_loss(std::int64_t rows, std::int64_t classes) {
  OneOp one;
  const Id logits = one.tensor("logits", {rows, classes});
  const Id labels = one.tensor("labels", {rows}, Role::activation, Type::i32);
  const Id loss = one.tensor("loss", {1}, Role::loss);
  const Id dlogits = one.tensor("dlogits", {rows, classes});
  const SoftmaxCrossEntropy op{
      .logits = logits, .labels = labels, .loss = loss, .dlogits = dlogits};
  one.operation(op);
  return cuda::make_plan(one.workload, {}, everything);
}

TEST(CudaLoss, IsDividedByClassesAndBatch) {
  for (const Division& expected : {
           Division{100, 2, 1, true},
           {1024, 16, 1, true},
           {1025, 16, 1, false},
           {32, 17, 32, true},
           {33, 17, 32, false},
           {1, 511, 32, true},  // 4 classes for each thread of a block
           {1, 512, 128, false},
           {64, 1000, 128, false},
           {64, 26752, 1024, false},  // the networks of linear layers of Shi et al.
           {1, 100000, 1024, false},
           {256, 26752, 1024, false},
           {512, 26752, 512, false},  // many rows keep a GPU busy with smaller blocks
           {2048, 26752, 128, false},
           {4096, 10000, 32, false},
       }) {
    const cuda::LaunchPlan plan = plan_of_loss(expected.rows, expected.classes);
    const auto losses = cuda::launches_of<cuda::LossLaunch>(plan);
    ASSERT_EQ(losses.size(), 1);
    EXPECT_EQ(losses[0].threads, expected.threads) << expected.rows << "x" << expected.classes;
    EXPECT_EQ(losses[0].in_one_block, expected.in_one_block)
        << expected.rows << "x" << expected.classes;
    const auto means = cuda::launches_of<cuda::MeanLossLaunch>(plan);
    EXPECT_EQ(means.size(), expected.in_one_block ? 0 : 1);
    EXPECT_EQ(plan.steps[0].launches.size(), 1 + means.size());
  }
}

TEST(CudaLoss, OfElementsIsOneBlockOrManyAndTheirSum) {
  for (const auto& [rows, parts] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {256, 1}, {257, 2}, {1 << 20, 1024}}) {
    const Shape shape{rows, 4};
    OneOp one;
    const Id logits = one.tensor("logits", shape);
    const Id targets = one.tensor("targets", shape);
    const Id loss = one.tensor("loss", {1}, Role::loss);
    one.operation(ElementwiseLoss{.logits = logits,
                                  .targets = targets,
                                  .loss = loss,
                                  .dlogits = one.tensor("dlogits", shape)});
    const cuda::LaunchPlan plan = cuda::make_plan(one.workload, {}, everything);
    const auto losses = cuda::launches_of<cuda::ElementwiseLossLaunch>(plan);
    ASSERT_EQ(losses.size(), 1);
    EXPECT_EQ(losses[0].parts, parts);
    EXPECT_EQ(losses[0].advance, parts == 1);
    const auto means = cuda::launches_of<cuda::MeanLossLaunch>(plan);
    ASSERT_EQ(means.size(), parts == 1 ? 0 : 1);
    if (!means.empty()) {
      EXPECT_EQ(means[0].rows, parts);
      EXPECT_EQ(means[0].count, 4 * rows);
      EXPECT_TRUE(means[0].advance);
    }
  }
}

}  // namespace

// ---- Where the CUDA backend updates weights in the product that computes their gradient. Needs no
// CUDA.

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
  const auto updated = [](const Workload& workload, const CompileOptions& options) {
    return updated_in_products(optimize_for_cuda(workload, options));
  };
  const std::vector<bool> nowhere(3, false);
  EXPECT_EQ(updated(of_a_large_layer(), {.execution = Execution::persistent}), nowhere);
  EXPECT_EQ(updated(of_a_large_layer(Precision::bf16), {.precision = Precision::bf16}), nowhere);
  EXPECT_EQ(updated(of_a_large_layer(Precision::f32, AdamWOptions{}), {}), nowhere);
  EXPECT_EQ(updated(of_a_large_layer(Precision::f32, SgdOptions{}, 2), {}), nowhere);
}

}  // namespace

}  // namespace crossover::test
