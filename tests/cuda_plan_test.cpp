// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend decides on the host: epilogues, masks, memory, launches. Needs no CUDA.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "crossover/catalogue.h"
#include "crossover/memory.h"
#include "cuda_plans.h"

namespace crossover::test {
namespace {

using cuda::Epilogue;
using cuda::Launch;
using cuda::LaunchPlan;
using cuda::make_plan;
using cuda::ProductForm;
using cuda::ProductLaunch;

bool plain_only(const ProductForm& form) { return form.epilogue == Epilogue::none; }

/// All but some epilogues.
cuda::Supports without(std::set<Epilogue> refused) {
  return [=](const ProductForm& form) { return !refused.contains(form.epilogue); };
}

std::vector<Epilogue> epilogues(const cuda::StepPlan& step) {
  std::vector<Epilogue> all;
  for (const Launch& launch : step.launches) {
    if (const auto* product = std::get_if<ProductLaunch>(&launch)) {
      all.push_back(product->form.epilogue);
    }
  }
  return all;
}

TEST(CudaPlan, TakesEpiloguesForBiasReluAndTheirGradients) {
  const LaunchPlan plan = make_plan(mlp_epoch(), {}, everything);
  ASSERT_EQ(plan.steps.size(), 1);
  // Two hidden layers and the last; then backwards dx and dw of each, no dx of the data. What a
  // product with a mask makes, it sums as well: only the last layer's bias gradient is left.
  EXPECT_EQ(epilogues(plan.steps[0]),
            (std::vector{Epilogue::relu_mask_bias, Epilogue::relu_mask_bias, Epilogue::bias,
                         Epilogue::drelu_bias_sum, Epilogue::b_sum, Epilogue::drelu_bias_sum,
                         Epilogue::none, Epilogue::none}));
  EXPECT_EQ(plan.steps[0].launches.size(), 8 + 2);  // loss and update
}

TEST(CudaPlan, WritesNoMaskThatNobodyCanUse) {
  const LaunchPlan plan = make_plan(mlp_epoch(), {}, without({Epilogue::drelu}));
  const std::vector<Epilogue> used = epilogues(plan.steps[0]);
  EXPECT_EQ(std::count(used.begin(), used.end(), Epilogue::relu_bias), 2);
  EXPECT_EQ(std::count(used.begin(), used.end(), Epilogue::relu_mask_bias), 0);
  EXPECT_EQ(std::count(used.begin(), used.end(), Epilogue::drelu_bias_sum), 0);
  EXPECT_EQ(std::count(used.begin(), used.end(), Epilogue::b_sum), 3);
  EXPECT_EQ(launches_of<cuda::ActivateGradLaunch>(plan.steps[0]).size(), 2);
}

TEST(CudaPlan, SumsBiasGradientsWhereTheLibraryCan) {
  const LaunchPlan plan = make_plan(mlp_epoch(), {}, without({Epilogue::drelu_bias_sum}));
  EXPECT_EQ(epilogues(plan.steps[0]),
            (std::vector{Epilogue::relu_mask_bias, Epilogue::relu_mask_bias, Epilogue::bias,
                         Epilogue::drelu, Epilogue::b_sum, Epilogue::drelu, Epilogue::b_sum,
                         Epilogue::b_sum}));
}

TEST(CudaPlan, TakesGradientsOfALineFromOwnKernels) {
  struct Case {
    std::vector<std::int64_t> widths;
    std::int64_t rows;
    std::size_t steps;
  };
  // A batch of one row, a last batch of one row, a layer of width one.
  for (const Case& c :
       {Case{{4, 8, 6, 2}, 1, 1}, Case{{4, 8, 6, 2}, 6, 2}, Case{{4, 1, 6, 2}, 5, 1}}) {
    const cuda::LaunchPlan plan =
        make_plan(epoch(mlp("m", c.widths, Activation::relu), c.rows), {}, everything);
    ASSERT_EQ(plan.steps.size(), c.steps);
    bool has_line = false;
    for (const cuda::StepPlan& step : plan.steps) {
      for (const ProductLaunch& product : launches_of<ProductLaunch>(step)) {
        const ProductForm& form = product.form;
        const bool is_line = std::min({form.m, form.n, form.k}) == 1;
        has_line = has_line || is_line;
        EXPECT_FALSE(is_line && (writes_vector(form.epilogue) || form.epilogue == Epilogue::drelu))
            << to_string(form);
      }
    }
    EXPECT_TRUE(has_line);
  }
}

TEST(CudaPlan, KnowsHowAlignedTheRowsOfABatchAre) {
  // 5 rows of 3 floats: batches begin at multiples of 60 bytes. 5 of 4: at multiples of 80.
  for (const auto& [features, aligned] : {std::pair{3, 4}, std::pair{4, 16}}) {
    const Workload workload = epoch(mlp("m", {features, 2}, Activation::relu), 15);
    const auto in_place = launches_of<ProductLaunch>(make_plan(workload, {}, everything).steps[0]);
    EXPECT_EQ(in_place[0].form.alignment_b, aligned);
    EXPECT_EQ(in_place[0].form.alignment_a, MemoryPlan::alignment);
    const auto staged = launches_of<ProductLaunch>(
        make_plan(workload, {.execution = Execution::graph}, everything).steps[0]);
    EXPECT_EQ(staged[0].form.alignment_b, MemoryPlan::alignment);
  }
}

TEST(CudaPlan, MultipliesIn16BitsAndSumsBiasGradientsInF32) {
  const Workload workload = fuse(training_epoch(
      mlp("m", {4, 8, 6, 2}, Activation::relu),
      {.rows = 10, .batch = 5, .optimizer = SgdOptions{}, .precision = Precision::bf16}));
  const cuda::StepPlan step =
      make_plan(workload, {.precision = Precision::bf16}, everything).steps[0];
  // The sums of a product with a mask would be bf16 as its result is: dw's product takes them.
  EXPECT_EQ(epilogues(step), (std::vector{Epilogue::relu_mask_bias, Epilogue::relu_mask_bias,
                                          Epilogue::bias, Epilogue::drelu, Epilogue::b_sum,
                                          Epilogue::drelu, Epilogue::b_sum, Epilogue::b_sum}));
  const auto products = launches_of<ProductLaunch>(step);
  for (std::size_t i = 0; i < products.size(); ++i) {
    const ProductForm& form = products[i].form;
    const bool makes_logits = i == 2;
    EXPECT_EQ(form.factors, Type::bf16);
    EXPECT_EQ(form.result, makes_logits || form.transpose_b ? Type::f32 : Type::bf16) << i;
    EXPECT_EQ(form.alignment_a, MemoryPlan::alignment);
    if (products[i].vector.exists()) {
      EXPECT_EQ(products[i].vector.type, form.result);
    }
  }
}

TEST(CudaPlan, RoundsAProductOnlyBehindItsBias) {
  const Workload workload = fuse(training_epoch(
      mlp("m", {4, 8, 2}, Activation::relu),
      {.rows = 10, .batch = 5, .optimizer = SgdOptions{}, .precision = Precision::bf16}));
  const LaunchPlan plan = make_plan(workload, {.precision = Precision::bf16}, plain_only);
  const auto forward = launches_of<cuda::BiasActivateLaunch>(plan.steps[0]);
  const auto products = launches_of<ProductLaunch>(plan.steps[0]);
  ASSERT_EQ(forward.size(), 2);
  EXPECT_EQ(products[0].form.result, Type::f32);
  EXPECT_EQ(products[0].d.offset, forward[0].x.offset);
  EXPECT_EQ(forward[0].x.type, Type::f32);
  EXPECT_EQ(forward[0].y.type, Type::bf16);
  EXPECT_NE(forward[0].x.offset, forward[0].y.offset);
  EXPECT_LE(forward[0].x.offset + 5 * 8 * 4, plan.run);
  EXPECT_EQ(forward[1].x.offset, forward[1].y.offset);  // logits are f32
}

TEST(CudaPlan, CastsAllOfAStepInOneLaunch) {
  const std::vector<std::int64_t> widths(30, 3);
  Workload workload = fuse(training_epoch(
      mlp("deep", widths, Activation::relu),
      {.rows = 10, .batch = 5, .optimizer = SgdOptions{}, .precision = Precision::f16}));
  workload.steps[0].ops.pop_back();  // an optimizer writes what products read of its parameters
  const cuda::StepPlan step =
      make_plan(workload, {.precision = Precision::f16}, everything).steps[0];
  const auto casts = launches_of<cuda::CastLaunch>(step);
  ASSERT_EQ(casts.size(), 2);  // 29 weights, 28 biases, the batch
  EXPECT_EQ(casts[0].casts.size(), cuda::max_spans);
  EXPECT_EQ(casts[1].casts.size(), 58 - cuda::max_spans);
  EXPECT_TRUE(std::holds_alternative<cuda::CastLaunch>(step.launches[1]));
  EXPECT_TRUE(casts[1].casts.back().x.is_view());
}

TEST(CudaPlan, UpdatesAllParametersInOnePass) {
  const LaunchPlan sgd = make_plan(mlp_epoch(), {}, everything);
  const auto plain = launches_of<cuda::UpdateLaunch>(sgd.steps[0]);
  ASSERT_EQ(plain.size(), 1);
  EXPECT_EQ(plain[0].spans.size(), 1);

  const Workload workload = epoch(mlp("m", {4, 8, 6, 2}, Activation::relu), 10, 1, AdamWOptions{});
  const auto adamw = launches_of<cuda::UpdateLaunch>(make_plan(workload, {}, everything).steps[0]);
  ASSERT_EQ(adamw.size(), 1);
  EXPECT_EQ(adamw[0].spans.size(), 6);  // weights decay, biases do not
  EXPECT_TRUE(adamw[0].spans[0].v.exists());
}

TEST(CudaPlan, SetsAllGradientsToZeroInOnePass) {
  const Workload workload =
      training_epoch(mlp("m", {4, 8, 6, 2}, Activation::relu),
                     {.rows = 10, .batch = 10, .optimizer = SgdOptions{}, .zero_gradients = true});
  const LaunchPlan plan = make_plan(workload, {}, everything);
  const auto zeros = launches_of<cuda::ZeroLaunch>(plan.steps[0]);
  ASSERT_EQ(zeros.size(), 1);
  const std::vector<Id> gradients = tensors_of(workload, Role::gradient);
  EXPECT_EQ(zeros[0].to.offset, plan[gradients.front()].offset);
  // From the first to the last, with what lies between them.
  EXPECT_EQ(zeros[0].to.offset + zeros[0].count * 4,
            plan[gradients.back()].offset + elements(workload[gradients.back()].shape) * 4);
}

TEST(CudaPlan, SplitsUpdatesOfManyTensors) {
  const std::vector<std::int64_t> widths(30, 3);
  const Workload workload = epoch(mlp("deep", widths, Activation::relu), 10, 1, AdamWOptions{});
  const cuda::StepPlan step = make_plan(workload, {}, everything).steps[0];
  const auto adamw = launches_of<cuda::UpdateLaunch>(step);
  ASSERT_EQ(adamw.size(), 2);
  EXPECT_EQ(adamw[0].spans.size(), cuda::max_spans);
  EXPECT_EQ(adamw[1].spans.size(), 2 * 29 - cuda::max_spans);
  EXPECT_EQ(launches_of<cuda::AdamWTimeLaunch>(step).size(), 1);
}

TEST(CudaPlan, TakesNoWorkspaceWithoutProducts) {
  OneOp one;
  const Id x = one.tensor("x", {3});
  one.operation(Activate{.x = x, .y = one.tensor("y", {3}), .activation = Activation::relu});
  EXPECT_EQ(make_plan(one.workload, {}, everything).workspace_bytes, 0);
  EXPECT_EQ(make_plan(mlp_epoch(), {}, everything).workspace_bytes, cuda::workspace_for_products);
}

}  // namespace
}  // namespace crossover::test
