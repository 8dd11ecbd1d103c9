// SPDX-License-Identifier: Apache-2.0
// What training_epoch() and fuse() put into the list.
#include <gtest/gtest.h>

#include "crossover/start.h"
#include "support.h"

namespace crossover::test {
namespace {

std::vector<std::string> names_of(const Step& step) {
  std::vector<std::string> names;
  for (const Op& op : step.ops) {
    names.emplace_back(name(op));
  }
  return names;
}

TEST(Lowering, ListsForwardLossBackwardUpdate) {
  const Workload workload = training_epoch(mlp("m", {4, 3, 2}, Activation::relu),
                                           {.rows = 10, .batch = 5, .optimizer = {}});
  ASSERT_EQ(workload.steps.size(), 1U);
  EXPECT_EQ(names_of(workload.steps[0]),
            (std::vector<std::string>{"Linear", "Activate", "Linear", "SoftmaxCrossEntropy",
                                      "LinearGrad", "ActivateGrad", "LinearGrad", "Sgd"}));
  ASSERT_EQ(workload.order.size(), 2U);
  EXPECT_EQ(workload.order[1].first_row, 5);
  EXPECT_NO_THROW(check(workload));
}

TEST(Lowering, FusesActivationsIntoTheirNeighbours) {
  const Workload workload = fuse(training_epoch(mlp("m", {4, 3, 2}, Activation::relu),
                                                {.rows = 10, .batch = 5, .optimizer = {}}));
  EXPECT_EQ(names_of(workload.steps[0]),
            (std::vector<std::string>{"Linear", "Linear", "SoftmaxCrossEntropy", "LinearGrad",
                                      "LinearGrad", "Sgd"}));
  EXPECT_EQ(std::get<Linear>(workload.steps[0].ops[0]).activation, Activation::relu);
  EXPECT_EQ(std::get<LinearGrad>(workload.steps[0].ops[3]).x_activation, Activation::relu);
  EXPECT_NO_THROW(check(workload));
}

TEST(Lowering, DoesNotFuseAValueThatOthersRead) {
  const Workload workload =
      fuse(training_epoch(residual_model(), {.rows = 4, .batch = 4, .optimizer = SgdOptions{}}));
  const std::vector<std::string> names = names_of(workload.steps[0]);
  // The gradient of the shared value is a sum, so its activation's derivative stands by itself.
  EXPECT_EQ(std::count(names.begin(), names.end(), "ActivateGrad"), 2);
  EXPECT_EQ(std::count(names.begin(), names.end(), "Activate"), 0);
  EXPECT_EQ(std::count(names.begin(), names.end(), "Add"), 4);
}

TEST(Lowering, TakesAShortLastBatch) {
  const Workload workload = training_epoch(mlp("m", {4, 3, 2}, Activation::relu),
                                           {.rows = 13, .batch = 5, .optimizer = {}});
  ASSERT_EQ(workload.steps.size(), 2U);
  ASSERT_EQ(workload.order.size(), 3U);
  EXPECT_EQ(workload.order[2].step, 1);
  EXPECT_EQ(workload.order[2].first_row, 10);
  EXPECT_EQ(workload[std::get<Linear>(workload.steps[1].ops[0]).x].shape, (Shape{3, 4}));
}

TEST(Lowering, TakesABatchLargerThanTheData) {
  const Workload workload = training_epoch(mlp("m", {4, 3, 2}, Activation::relu),
                                           {.rows = 3, .batch = 500, .optimizer = {}});
  ASSERT_EQ(workload.order.size(), 1U);
  EXPECT_EQ(workload[std::get<Linear>(workload.steps[0].ops[0]).x].shape, (Shape{3, 4}));
}

TEST(Lowering, UpdatesOnceForTheAccumulatedStepsAndAtTheEnd) {
  const Workload workload =
      training_epoch(mlp("m", {4, 3, 2}, Activation::relu),
                     {.rows = 25, .batch = 5, .optimizer = {}, .accumulate = 3});
  std::vector<bool> updates;
  std::vector<bool> accumulates;
  for (const auto& run : workload.order) {
    const Step& step = workload.steps[static_cast<std::size_t>(run.step)];
    updates.push_back(std::holds_alternative<Sgd>(step.ops.back()));
    for (const Op& op : step.ops) {
      if (const auto* gradient = std::get_if<LinearGrad>(&op)) {
        accumulates.push_back(gradient->accumulate);
        break;
      }
    }
  }
  EXPECT_EQ(updates, (std::vector<bool>{false, false, true, false, true}));
  EXPECT_EQ(accumulates, (std::vector<bool>{false, true, true, false, true}));
  EXPECT_DOUBLE_EQ(std::get<SoftmaxCrossEntropy>(workload.steps[0].ops[3]).scale, 1.0 / 3);
}

TEST(Lowering, AccumulatedBatchesEqualOneLargeBatch) {
  const Model model = residual_model();
  const Dataset data = uniform_rows(model.sample, 12, model.classes);
  const auto parameters_after = [&](std::int64_t batch, std::int64_t accumulate) {
    Reference reference(training_epoch(
        model, {.rows = 12, .batch = batch, .optimizer = SgdOptions{}, .accumulate = accumulate}));
    set_data(reference, data);
    restart(reference);
    reference.run(0, static_cast<std::int64_t>(reference.workload().order.size()));
    std::vector<double> all;
    for (const Id id : tensors_of(reference.workload(), Role::parameter)) {
      all.insert(all.end(), reference[id].begin(), reference[id].end());
    }
    return all;
  };
  EXPECT_LE(relative_error(parameters_after(3, 4), parameters_after(12, 1)), 1e-14);
}

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
  const auto trained = [&](const Workload& workload) {
    Reference reference(workload);
    set_data(reference, data);
    restart(reference);
    reference.run(0, 3);
    std::vector<double> all = copy(reference[find(workload, "loss")]);
    for (const Id id : tensors_of(workload, Role::parameter)) {
      all.insert(all.end(), reference[id].begin(), reference[id].end());
    }
    return all;
  };
  const Workload fused = fuse_update(fuse(plain));
  EXPECT_LT(fused.steps[0].ops.size(), plain.steps[0].ops.size());
  EXPECT_LE(relative_error(trained(fused), trained(plain)), 1e-14);
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
}

TEST(Lowering, DecaysMatricesOnly) {
  const Workload workload =
      training_epoch(mlp("m", {4, 3, 2}, Activation::relu),
                     {.rows = 5, .batch = 5, .optimizer = AdamWOptions{.weight_decay = 0.5}});
  const auto& adamw = std::get<AdamW>(workload.steps[0].ops.back());
  EXPECT_EQ(adamw.weight_decay, (std::vector<double>{0.5, 0, 0.5, 0}));
}

TEST(Lowering, SaysWhatDoesNotFit) {
  const auto message = [](const Model& model, const TrainingOptions& options) -> std::string {
    try {
      static_cast<void>(training_epoch(model, options));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  const TrainingOptions fine{.rows = 5, .batch = 5, .optimizer = SgdOptions{}};
  Model mismatched{.name = "m", .sample = {4}, .classes = 4, .layers = {}};
  mismatched.add(AddLayer{}, {0, mismatched.add(LinearLayer{3}, {0})});
  EXPECT_EQ(message(mismatched, fine), "model 'm': layer 1 adds values of different shapes");

  Model wrong_classes{.name = "m", .sample = {4}, .classes = 7, .layers = {}};
  wrong_classes.add(LinearLayer{3}, {0});
  EXPECT_EQ(message(wrong_classes, fine),
            "model 'm': the last layer gives [3] a sample, not one number for each of 7 classes");

  Model ahead{.name = "m", .sample = {4}, .classes = 3, .layers = {}};
  ahead.add(LinearLayer{3}, {1});
  EXPECT_EQ(message(ahead, fine), "model 'm': a layer reads a value not made before it");

  const Model sound = mlp("m", {4, 3}, Activation::relu);
  EXPECT_EQ(message(sound, {.rows = 0, .batch = 5}), "model 'm': rows must be at least one");
  EXPECT_EQ(message(sound, {.rows = 5, .batch = 0}), "model 'm': the batch must be at least one");
  EXPECT_EQ(message({.name = "m", .sample = {4}, .classes = 3, .layers = {}}, fine),
            "model 'm': the model has no layers");
}

TEST(Check, NamesOperationAndTensor) {
  OneOp one;
  const Id x = one.tensor("x", {2, 3});
  const Id w = one.tensor("w", {5, 4}, Role::parameter);
  one.operation(Linear{.x = x, .w = w, .bias = none, .y = one.tensor("y", {2, 5})});
  try {
    check(one.workload);
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "Linear: 'x' [2, 3] does not fit the weights [5, 4]");
  }
}

TEST(Check, NamesTheFactorThatDoesNotFit) {
  const auto verdict = [](const Shape& a, const Shape& b, const Shape& c) {
    OneOp one;
    const Id left = one.tensor("a", a);
    const Id right = one.tensor("b", b);
    one.operation(Gemm{.a = left, .b = right, .c = one.tensor("c", c), .transpose_b = true});
    try {
      check(one.workload);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(verdict({5, 7}, {3, 7}, {5, 3}), "");
  EXPECT_EQ(verdict({5, 7}, {3, 6}, {5, 3}), "Gemm: 'a' as [5, 7] does not fit 'b' as [6, 3]");
  EXPECT_EQ(verdict({5, 7}, {3, 7}, {3, 5}), "Gemm: tensor 'c' is [3, 5], not [5, 3]");
  EXPECT_EQ(verdict({5, 7, 1}, {3, 7}, {5, 3}), "Gemm: 'a' [5, 7, 1] is no matrix");
}

}  // namespace
}  // namespace crossover::test
