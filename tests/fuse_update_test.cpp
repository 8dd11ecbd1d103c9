// SPDX-License-Identifier: Apache-2.0
// What fuse_update() makes of the list.
#include <gtest/gtest.h>

#include <algorithm>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "support.h"

namespace crossover::test {
namespace {

TEST(FuseUpdate, AddsEachProductToItsParameter) {
  const Workload workload = fuse_update(fuse(
      training_epoch(mlp("m", {4, 3, 2}, Activation::relu),
                     {.rows = 10, .batch = 5, .optimizer = SgdOptions{.learning_rate = 0.5}})));
  EXPECT_NO_THROW(check(workload));
  EXPECT_EQ(names_of(workload.steps[0]),
            (std::vector<std::string>{"Linear", "Linear", "SoftmaxCrossEntropy", "LinearGrad",
                                      "LinearGrad"}));
  EXPECT_DOUBLE_EQ(std::get<SoftmaxCrossEntropy>(workload.steps[0].ops[2]).scale, -0.5);
  const auto& gradient = std::get<LinearGrad>(workload.steps[0].ops[3]);
  EXPECT_EQ(gradient.dw, gradient.w);
  EXPECT_TRUE(gradient.accumulate);
}

TEST(FuseUpdate, TrainsTheSame) {
  const Workload plain = training_epoch(
      residual_model(), {.rows = 13, .batch = 5, .optimizer = SgdOptions{.learning_rate = 0.3}});
  const Dataset data = uniform_rows({5}, 13, 3);
  const Workload fused = fuse_update(fuse(plain));
  EXPECT_LT(fused.steps[0].ops.size(), plain.steps[0].ops.size());
  EXPECT_LE(relative_error(trained(fused, data), trained(plain, data)), 1e-14);
}

TEST(FuseUpdate, LeavesOtherTrainingAlone) {
  const Model model = mlp("m", {4, 3, 2}, Activation::relu);
  const auto operations = [](const Workload& workload) {
    std::vector<std::string> all;
    for (const Step& step : workload.steps) {
      const auto names = names_of(step);
      all.insert(all.end(), names.begin(), names.end());
    }
    return all;
  };
  const Workload adamw =
      training_epoch(model, {.rows = 10, .batch = 5, .optimizer = AdamWOptions{}});
  const Workload accumulated =
      training_epoch(model, {.rows = 10, .batch = 5, .optimizer = SgdOptions{}, .accumulate = 2});
  EXPECT_EQ(operations(fuse_update(adamw)), operations(adamw));
  EXPECT_EQ(operations(fuse_update(accumulated)), operations(accumulated));
  const Workload scaled = training_epoch(
      model, {.rows = 10, .batch = 5, .optimizer = SgdOptions{}, .precision = Precision::f16});
  EXPECT_EQ(operations(fuse_update(scaled)), operations(scaled));
}

TEST(FuseUpdate, LeavesSmallLayersToTheOptimizer) {
  const Workload plain =
      training_epoch(mlp("m", {5, 8, 6, 3}, Activation::relu),
                     {.rows = 13, .batch = 5, .optimizer = SgdOptions{.learning_rate = 0.3}});
  const Workload fused = fuse_update(fuse(plain), 5 * 8);
  EXPECT_NO_THROW(check(fused));
  const auto& ops = fused.steps[0].ops;
  std::vector<bool> in_product;
  for (const Op& op : ops) {
    if (const auto* gradient = std::get_if<LinearGrad>(&op)) {
      in_product.push_back(gradient->dw == gradient->w);
      EXPECT_EQ(gradient->accumulate, in_product.back());
    }
  }
  EXPECT_EQ(in_product, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(std::get<Sgd>(ops.back()).parameters.size(), 2);
  const Dataset data = uniform_rows({5}, 13, 3);
  EXPECT_LE(relative_error(trained(fused, data), trained(plain, data)), 1e-14);
}

TEST(FuseUpdate, AddsProductsOfBf16ToTheParametersInF32) {
  const Workload plain = fuse(training_epoch(
      residual_model(),
      {.rows = 13, .batch = 5, .optimizer = SgdOptions{}, .precision = Precision::bf16}));
  const Workload fused = fuse_update(plain);
  EXPECT_NO_THROW(check(fused, Precision::bf16));
  EXPECT_LT(fused.steps[0].ops.size(), plain.steps[0].ops.size());
  for (const Op& op : fused.steps[0].ops) {
    if (const auto* gradient = std::get_if<LinearGrad>(&op)) {
      EXPECT_EQ(fused[gradient->dw].role, Role::parameter);
      EXPECT_EQ(fused[gradient->w].type, Type::bf16);
    }
  }
  const Dataset data = uniform_rows({5}, 13, 3);
  EXPECT_LE(relative_error(trained(fused, data), trained(plain, data)),
            unit_roundoff(Precision::bf16));
}

}  // namespace
}  // namespace crossover::test
