// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "crossover/verify.h"
#include "support.h"

namespace crossover::test {

// ---- fuse() and fuse_update() on networks of every kind: fewer operations that compute the same.

namespace {

struct FuseCase {
  std::string name;
  Model model;
  /// Operations of a fused step, but for those that fuse() leaves as they are everywhere.
  std::map<std::string, int> left;

  friend std::ostream& operator<<(std::ostream& out, const FuseCase& c) { return out << c.name; }
};

/// Pooling behind an activation whose derivative it can't take.
Model hard_model() {
  Model model{.name = "hard", .sample = {2, 6, 6}, .classes = 3, .layers = {}};
  Value value = model.add(ConvolutionLayer{3, {.size = 3}}, {0});
  value = model.add(ActivationLayer{Activation::hardswish}, {value});
  value = model.add(AveragePoolLayer{{.size = 2, .stride = 2}}, {value});
  model.add(LinearLayer{3}, {model.add(FlattenLayer{}, {value})});
  return model;
}

std::vector<FuseCase> fuse_cases() {
  return {
      {"mlp", mlp("mlp", {5, 9, 8, 3}, Activation::relu), {}},
      {"mlp_tanh", mlp("mlp", {5, 9, 8, 3}, Activation::tanh), {}},
      {"mlp_mse", mlp("mlp", {5, 9, 8, 1}, Activation::tanh, LossFunction::mse), {}},
      // The gradient of the value that three layers read is a sum, so its activation's derivative
      // stands by itself.
      {"residual", residual_model(), {{"ActivateGrad", 2}, {"Add", 4}}},
      // Their gradients read what their products make.
      {"mlp_silu",
       mlp("mlp", {5, 9, 8, 3}, Activation::silu),
       {{"Activate", 2}, {"ActivateGrad", 2}}},
      {"convolution_hardswish", hard_model(), {{"Activate", 1}, {"ActivateGrad", 1}}},
      // The ReLU between the first pooling and the second convolution stands by itself.
      {"alexnet_r", small_alexnet(), {{"Activate", 1}, {"ActivateGrad", 1}}},
      // Two convolutions whose input a ReLU made, and two products behind dropout.
      {"alexnet_s", small_alexnet_s(), {{"ActivateGrad", 4}}},
      {"resnet_r", small_resnet(), {}},
      // Where the shortcut has a convolution of its own, both of its gradients meet before the
      // pooling of the stem.
      {"resnet_s", small_resnet_s(), {{"Add", 1}}},
      {"lstm", small_language_model(), {}},
      // Each block adds twice, and so do its gradients; the embedding adds to the product's. GELU's
      // derivative is taken from what a product would have to keep besides.
      {"gpt",
       gpt({.vocabulary = 7, .width = 6, .layers = 2, .heads = 2, .time = 4}),
       {{"Activate", 2}, {"ActivateGrad", 2}, {"Add", 9}}},
  };
}

Workload unfused_epoch(const Model& model) {
  return training_epoch(model,
                        {.rows = 9, .batch = 6, .optimizer = SgdOptions{.learning_rate = 0.01}});
}

std::vector<double> checked_and_trained(const Workload& workload, const Model& model) {
  EXPECT_NO_THROW(check(workload));
  return trained(workload, uniform_data(model, 9));
}

class Fuse : public testing::TestWithParam<FuseCase> {};

TEST_P(Fuse, TrainsTheSame) {
  const Workload plain = unfused_epoch(GetParam().model);
  const std::vector<double> expected = checked_and_trained(plain, GetParam().model);
  const Workload fused = fuse(plain);
  EXPECT_LE(relative_error(checked_and_trained(fused, GetParam().model), expected), 1e-12);
  EXPECT_LE(relative_error(checked_and_trained(fuse_update(fused), GetParam().model), expected),
            1e-12);
  EXPECT_LE(relative_error(checked_and_trained(fuse_update(plain), GetParam().model), expected),
            1e-12);
}

TEST_P(Fuse, LeavesNoPassThatAnotherOperationCanTakeOver) {
  std::map<std::string, int> left;
  const Workload workload = fuse(unfused_epoch(GetParam().model));
  for (const Op& op : workload.steps[0].ops) {
    const std::string of = name(op);
    if (of == "Activate" || of == "ActivateGrad" || of == "Add") {
      ++left[of];
    }
  }
  EXPECT_EQ(left, GetParam().left);
}

TEST_P(Fuse, UpdatesWeightsOfProductsWhereTheyAreComputed) {
  const Workload workload = fuse_update(fuse(unfused_epoch(GetParam().model)));
  for (const Op& op : workload.steps[0].ops) {
    if (const auto* product = std::get_if<LinearGrad>(&op)) {
      const auto writes = [product](const Op& other) {
        const std::vector<Id> written = operands(other).writes;
        return std::count(written.begin(), written.end(), product->dw) > 0;
      };
      const std::vector<Op>& ops = workload.steps[0].ops;
      const bool is_tied = std::count_if(ops.begin(), ops.end(), writes) > 1;
      EXPECT_EQ(workload[product->dw].role, is_tied ? Role::gradient : Role::parameter);
    } else if (const auto* update = std::get_if<Update>(&op)) {
      EXPECT_FALSE(update->parameters.empty());
      EXPECT_EQ(std::get<SgdOptions>(update->rule).learning_rate, -1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Fuse, testing::ValuesIn(fuse_cases()), labelled);

}  // namespace

// ---- What fuse_update() makes of the list.

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
  EXPECT_EQ(std::get<Update>(ops.back()).parameters.size(), 2);
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
