// SPDX-License-Identifier: Apache-2.0
// What training_epoch() and fuse() put into the list.
#include <gtest/gtest.h>

#include "crossover/start.h"
#include "crossover/verify.h"
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

std::vector<double> trained(const Workload& workload, const Dataset& data) {
  Reference reference(workload);
  set_data(reference, data);
  restart(reference);
  reference.run(0, static_cast<std::int64_t>(workload.order.size()));
  std::vector<double> all = copy(reference[find(workload, "loss")]);
  for (const Id id : tensors_of(workload, Role::parameter)) {
    all.insert(all.end(), reference[id].begin(), reference[id].end());
  }
  return all;
}

TEST(Lowering16Bit, BeginsEachStepWithCasts) {
  const Workload workload = training_epoch(
      mlp("m", {4, 3, 2}, Activation::relu),
      {.rows = 13, .batch = 5, .optimizer = SgdOptions{}, .precision = Precision::bf16});
  EXPECT_NO_THROW(check(workload, Precision::bf16));
  for (const Step& step : workload.steps) {
    EXPECT_EQ(names_of(step),
              (std::vector<std::string>{"Cast", "Cast", "Cast", "Cast", "Linear", "Activate",
                                        "Linear", "SoftmaxCrossEntropy", "LinearGrad",
                                        "ActivateGrad", "LinearGrad", "Sgd"}));
    // Both weights and the first bias; the last bias is added to logits, which are f32.
    EXPECT_EQ(workload[std::get<Cast>(step.ops[0]).x].name, "layer 0 weight");
    EXPECT_EQ(workload[std::get<Cast>(step.ops[1]).x].name, "layer 0 bias");
    EXPECT_EQ(workload[std::get<Cast>(step.ops[2]).x].name, "layer 2 weight");
    EXPECT_EQ(workload[std::get<Cast>(step.ops[3]).x].role, Role::input);
    const auto& last = std::get<Linear>(step.ops[6]);
    EXPECT_EQ(workload[last.bias].name, "layer 2 bias");
    EXPECT_EQ(workload[last.y].type, Type::f32);
  }
  for (const Tensor& tensor : workload.tensors) {
    if (tensor.role != Role::activation) {
      EXPECT_TRUE(tensor.type == Type::f32 || tensor.type == Type::i32) << tensor.name;
    } else if (tensor.name != "layer 2 result") {
      EXPECT_EQ(tensor.type, Type::bf16) << tensor.name;
    }
  }
  EXPECT_EQ(names_of(fuse(workload).steps[0]),
            (std::vector<std::string>{"Cast", "Cast", "Cast", "Cast", "Linear", "Linear",
                                      "SoftmaxCrossEntropy", "LinearGrad", "LinearGrad", "Sgd"}));
}

TEST(Lowering16Bit, CastsLogitsThatAnActivationMakes) {
  Model model{.name = "activated", .sample = {3}, .classes = 3, .layers = {}};
  model.add(ActivationLayer{Activation::sigmoid}, {model.add(LinearLayer{3}, {0})});
  for (const Precision precision : {Precision::bf16, Precision::f16}) {
    const Workload workload =
        fuse(training_epoch(model, {.rows = 5, .batch = 5, .precision = precision}));
    EXPECT_NO_THROW(check(workload, precision));
    EXPECT_EQ(
        names_of(workload.steps[0]),
        (std::vector<std::string>{"Cast", "Cast", "Cast", "Linear", "Cast", "SoftmaxCrossEntropy",
                                  "ActivateGrad", "LinearGrad", "Sgd"}));
  }
}

TEST(Lowering16Bit, ScalesTheLossInF16Only) {
  const auto scales = [](Precision precision, const Optimizer& optimizer) {
    const Workload workload =
        training_epoch(mlp("m", {4, 2}, Activation::relu), {.rows = 10,
                                                            .batch = 5,
                                                            .optimizer = optimizer,
                                                            .accumulate = 2,
                                                            .precision = precision,
                                                            .loss_scale = 512});
    std::pair<double, double> found;
    for (const Op& op : workload.steps.back().ops) {
      if (const auto* loss = std::get_if<SoftmaxCrossEntropy>(&op)) {
        found.first = loss->scale;
      } else if (const auto* sgd = std::get_if<Sgd>(&op)) {
        found.second = sgd->gradient_factor;
      } else if (const auto* adamw = std::get_if<AdamW>(&op)) {
        found.second = adamw->gradient_factor;
      }
    }
    return found;
  };
  for (const Optimizer& optimizer : {Optimizer{SgdOptions{}}, Optimizer{AdamWOptions{}}}) {
    EXPECT_EQ(scales(Precision::f16, optimizer), std::pair(256.0, 1.0 / 512));
    EXPECT_EQ(scales(Precision::bf16, optimizer), std::pair(0.5, 1.0));
    EXPECT_EQ(scales(Precision::tf32, optimizer), std::pair(0.5, 1.0));
  }
}

TEST(Lowering16Bit, TrainsTheSameWithinItsRounding) {
  const Dataset data = uniform_rows({5}, 40, 3);
  const auto trained_in = [&](Precision precision, double loss_scale, const Optimizer& optimizer) {
    return trained(training_epoch(residual_model(), {.rows = 40,
                                                     .batch = 8,
                                                     .optimizer = optimizer,
                                                     .accumulate = 2,
                                                     .precision = precision,
                                                     .loss_scale = loss_scale}),
                   data);
  };
  for (const Optimizer& optimizer :
       {Optimizer{SgdOptions{}}, Optimizer{AdamWOptions{.learning_rate = 0.01}}}) {
    const std::vector<double> exact = trained_in(Precision::f32, 1, optimizer);
    for (const Precision precision : {Precision::bf16, Precision::f16}) {
      const double error = relative_error(trained_in(precision, 1024, optimizer), exact);
      EXPECT_LE(error, 2 * unit_roundoff(precision));
      EXPECT_GT(error, unit_roundoff(precision) / 100) << "nothing was rounded";
    }
    // What the scale puts in, the optimizer takes out. A scale that lets gradients vanish shows.
    const std::vector<double> scaled = trained_in(Precision::f16, 1024, optimizer);
    EXPECT_LE(relative_error(trained_in(Precision::f16, 4096, optimizer), scaled), 1e-4);
    EXPECT_GT(relative_error(trained_in(Precision::f16, 0x1p-18, optimizer), scaled), 1e-4);
  }
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
  EXPECT_EQ(verdict({5, 7, 1}, {3, 7}, {5, 3}), "Gemm: 'a' [5, 7, 1] is not a matrix");
}

/// What check() says of the workload, for a precision.
std::string complaint(const Workload& workload, Precision precision) {
  try {
    check(workload, precision);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Check, TakesTheTypesThatMeanSomething) {
  const auto linear = [](Type x, Type w, Type bias, Type y, Precision precision) {
    OneOp one;
    const Linear op{.x = one.tensor("x", {2, 3}, Role::activation, x),
                    .w = one.tensor("w", {5, 3}, Role::parameter, w),
                    .bias = one.tensor("bias", {5}, Role::parameter, bias),
                    .y = one.tensor("y", {2, 5}, Role::activation, y)};
    return complaint(one.operation(op).workload, precision);
  };
  constexpr auto f32 = Type::f32;
  for (const auto& [type, precision] :
       {std::pair{Type::bf16, Precision::bf16}, std::pair{Type::f16, Precision::f16}}) {
    EXPECT_EQ(linear(type, type, type, type, precision), "");
    EXPECT_EQ(linear(type, type, f32, f32, precision), "");
    EXPECT_NE(linear(type, f32, type, type, precision), "");
    EXPECT_NE(linear(f32, type, f32, f32, precision), "");
    EXPECT_NE(linear(type, type, f32, type, precision), "");
    EXPECT_NE(linear(type, type, type, f32, precision), "");
    EXPECT_NE(linear(f32, f32, type, type, precision), "");
  }
  EXPECT_EQ(linear(f32, f32, f32, f32, Precision::tf32), "");
  EXPECT_EQ(linear(Type::i32, Type::i32, f32, f32, Precision::f32),
            "Linear: tensor 'x' is stored as i32, which nothing calculates with");
  EXPECT_EQ(linear(Type::bf16, f32, f32, f32, Precision::bf16),
            "Linear: tensor 'w' is stored as f32, not bf16");
  EXPECT_EQ(linear(f32, f32, f32, f32, Precision::bf16),
            "a workload that stores f32 can't be compiled for bf16");
  EXPECT_EQ(linear(Type::f16, Type::f16, f32, f32, Precision::f32),
            "a workload that stores f16 can't be compiled for f32");
}

TEST(Check, CastsFromAndToF32Only) {
  const auto cast = [](Type from, Type to) {
    OneOp one;
    const Id x = one.tensor("x", {3}, Role::activation, from);
    const Id y = one.tensor("y", {3}, Role::activation, to);
    one.operation(Cast{.x = x, .y = y});
    try {
      check(one.workload);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(cast(Type::f32, Type::bf16), "");
  EXPECT_EQ(cast(Type::f16, Type::f32), "");
  EXPECT_EQ(cast(Type::f16, Type::bf16),
            "Cast: from 'x' to 'y', from f16 to bf16: one of two different types must be f32");
  EXPECT_NE(cast(Type::f32, Type::f32), "");
  EXPECT_NE(cast(Type::i32, Type::bf16), "");
}

TEST(Check, KeepsWhatIsTrainedInF32) {
  const auto sgd = [](Type parameter, Type gradient) {
    OneOp one;
    const Id w = one.tensor("w", {3}, Role::parameter, parameter);
    const Id g = one.tensor("g", {3}, Role::gradient, gradient);
    return complaint(one.operation(Sgd{{w}, {g}, 0.1}).workload, Precision::bf16);
  };
  EXPECT_EQ(sgd(Type::bf16, Type::f32), "Sgd: tensor 'w' is stored as bf16, not f32");
  EXPECT_EQ(sgd(Type::f32, Type::bf16), "Sgd: tensor 'g' is stored as bf16, not f32");
}

}  // namespace
}  // namespace crossover::test
