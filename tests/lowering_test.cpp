// SPDX-License-Identifier: Apache-2.0
// What training_epoch() and fuse() put into the list.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
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
  const std::vector<Model> models{
      residual_model(), alexnet(AlexNetR{.image = 12, .channels = {2, 3, 2}, .classes = 3}),
      language_model({.vocabulary = 11, .hidden = 5, .time = 4})};
  for (const Model& model : models) {
    const Dataset data = uniform_data(model, 12);
    const auto parameters_after = [&](std::int64_t batch, std::int64_t accumulate) {
      Reference reference(training_epoch(
          model,
          {.rows = 12, .batch = batch, .optimizer = SgdOptions{}, .accumulate = accumulate}));
      set_data(reference, data);
      restart(reference);
      reference.run(0, static_cast<std::int64_t>(reference.workload().order.size()));
      std::vector<double> all;
      for (const Id id : tensors_of(reference.workload(), Role::parameter)) {
        all.insert(all.end(), reference[id].begin(), reference[id].end());
      }
      return all;
    };
    EXPECT_LE(relative_error(parameters_after(3, 4), parameters_after(12, 1)), 1e-14) << model.name;
  }
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

// ---- images

Model image_model() {
  Model model{.name = "images", .sample = {2, 6, 6}, .classes = 3, .layers = {}};
  Value value = model.add(ConvolutionLayer{4, {.size = 3, .padding = 1}}, {0});
  value = model.add(BatchNormLayer{}, {value});
  value = model.add(ActivationLayer{Activation::relu}, {value});
  value = model.add(MaxPoolLayer{{.size = 2, .stride = 2}}, {value});
  value = model.add(DropoutLayer{0.25}, {value});
  value = model.add(FlattenLayer{}, {value});
  value = model.add(DropoutLayer{0.25}, {value});
  model.add(LinearLayer{3}, {value});
  return model;
}

/// The first operation of that kind in a step.
template <class Operation>
const Operation& first_of(const Step& step) {
  for (const Op& op : step.ops) {
    if (const auto* found = std::get_if<Operation>(&op)) {
      return *found;
    }
  }
  throw std::logic_error("the step has none");
}

TEST(LoweringImages, ListsForwardLossBackwardUpdate) {
  const Workload workload = training_epoch(image_model(), {.rows = 8, .batch = 4, .optimizer = {}});
  EXPECT_NO_THROW(check(workload));
  EXPECT_EQ(
      names_of(workload.steps[0]),
      (std::vector<std::string>{"Convolution", "BatchNorm", "Activate", "MaxPool", "Dropout",
                                "Reshape", "Dropout", "Linear", "SoftmaxCrossEntropy", "LinearGrad",
                                "DropoutGrad", "Reshape", "DropoutGrad", "MaxPoolGrad",
                                "ActivateGrad", "BatchNormGrad", "ConvolutionGrad", "Sgd"}));
  EXPECT_EQ(first_of<ConvolutionGrad>(workload.steps[0]).dx, none) << "nobody asks for it";
  EXPECT_EQ(workload[first_of<Convolution>(workload.steps[0]).y].shape, (Shape{4, 4, 6, 6}));
  EXPECT_EQ(workload[first_of<MaxPool>(workload.steps[0]).where].type, Type::u8);
  EXPECT_EQ(workload[first_of<Reshape>(workload.steps[0]).y].shape, (Shape{4, 36}));
}

TEST(LoweringImages, GivesEachDropoutASeedAndACounter) {
  const Workload workload = training_epoch(
      image_model(), {.rows = 10, .batch = 4, .optimizer = AdamWOptions{}, .accumulate = 2});
  std::set<std::pair<std::int64_t, Id>> seeds;
  for (const Step& step : workload.steps) {
    std::multiset<std::pair<std::int64_t, Id>> forward;
    std::multiset<std::pair<std::int64_t, Id>> backward;
    for (const Op& op : step.ops) {
      if (const auto* dropout = std::get_if<Dropout>(&op)) {
        forward.emplace(dropout->seed, dropout->step);
        EXPECT_EQ(workload[dropout->step].role, Role::state);
        EXPECT_EQ(dropout->probability, 0.25);
      } else if (const auto* gradient = std::get_if<DropoutGrad>(&op)) {
        backward.emplace(gradient->seed, gradient->step);
        EXPECT_EQ(gradient->probability, 0.25);
      }
    }
    EXPECT_EQ(forward, backward);
    seeds.insert(forward.begin(), forward.end());
  }
  ASSERT_EQ(seeds.size(), 2U) << "the same in each step";
  EXPECT_NE(seeds.begin()->first, seeds.rbegin()->first);
  EXPECT_NE(seeds.begin()->second, seeds.rbegin()->second);

  Reference reference(workload);
  set_data(reference, uniform_rows({2, 6, 6}, 10, 3));
  restart(reference);
  reference.run(0, 3);
  for (const auto& [seed, counter] : seeds) {
    EXPECT_EQ(reference[counter][0], 3) << "counts every batch";
  }
  restart(reference);
  EXPECT_EQ(reference[seeds.begin()->second][0], 0);
}

TEST(LoweringImages, AddsGradientsOfLaterBatchesToTheFirst) {
  const Workload workload = training_epoch(
      image_model(), {.rows = 8, .batch = 4, .optimizer = SgdOptions{}, .accumulate = 2});
  EXPECT_NO_THROW(check(workload));
  ASSERT_EQ(workload.steps.size(), 2U);
  const auto count = [&](std::size_t step) {
    const std::vector<std::string> names = names_of(workload.steps[step]);
    return std::count(names.begin(), names.end(), "Add");
  };
  EXPECT_EQ(count(0), 0);
  EXPECT_EQ(count(1), 4) << "weight and bias, scale and shift; Linear's operation adds by itself";
  const auto& first = first_of<ConvolutionGrad>(workload.steps[0]);
  const auto& second = first_of<ConvolutionGrad>(workload.steps[1]);
  EXPECT_EQ(workload[first.dw].role, Role::gradient);
  EXPECT_EQ(workload[second.dw].role, Role::activation);
  const auto& add = std::get<Add>(workload.steps[1].ops[workload.steps[1].ops.size() - 3]);
  EXPECT_EQ(add.a, first.dw);
  EXPECT_EQ(add.b, second.dw);
  EXPECT_EQ(add.y, first.dw);
}

TEST(LoweringImages, ReadsScalesAndBiasesAsTheyAre) {
  const Workload workload = training_epoch(image_model(), {.rows = 4,
                                                           .batch = 4,
                                                           .optimizer = SgdOptions{},
                                                           .accumulate = 1,
                                                           .precision = Precision::bf16});
  EXPECT_NO_THROW(check(workload, Precision::bf16));
  std::vector<std::string> cast;
  for (const Op& op : workload.steps[0].ops) {
    if (const auto* found = std::get_if<Cast>(&op)) {
      cast.push_back(workload[found->x].name);
    }
  }
  EXPECT_EQ(cast, (std::vector<std::string>{"layer 0 weight", "layer 7 weight", "x"}));
  const auto& convolution = first_of<Convolution>(workload.steps[0]);
  EXPECT_EQ(workload[convolution.w].type, Type::bf16);
  EXPECT_EQ(workload[convolution.bias].role, Role::parameter);
  const auto& norm = first_of<BatchNorm>(workload.steps[0]);
  EXPECT_EQ(workload[norm.scale].role, Role::parameter);
  EXPECT_EQ(workload[norm.mean].type, Type::f32);
  EXPECT_EQ(workload[first_of<ConvolutionGrad>(workload.steps[0]).dw].type, Type::f32);
}

TEST(LoweringImages, ComputesTheGradientThatNormalizationOfTheDataLeavesUnread) {
  Model model{.name = "m", .sample = {2, 3, 3}, .classes = 3, .layers = {}};
  const Value normal = model.add(BatchNormLayer{}, {0});
  model.add(LinearLayer{3}, {model.add(GlobalAveragePoolLayer{}, {normal})});
  const Workload workload = training_epoch(model, {.rows = 4, .batch = 4, .optimizer = {}});
  EXPECT_NO_THROW(check(workload));
  const auto& gradient = first_of<BatchNormGrad>(workload.steps[0]);
  EXPECT_EQ(workload[gradient.dx].role, Role::activation);
}

// ---- sequences

const LanguageModel few_words{.vocabulary = 11, .hidden = 5, .layers = 2, .time = 4};

TEST(LoweringSequences, PutsTimeFirstBehindTheEmbedding) {
  const Workload workload =
      training_epoch(language_model(few_words), {.rows = 10, .batch = 3, .optimizer = {}});
  EXPECT_NO_THROW(check(workload));
  const Step& step = workload.steps[0];
  EXPECT_EQ(names_of(step), (std::vector<std::string>{
                                "Embedding", "Lstm", "Lstm", "Linear", "SoftmaxCrossEntropy",
                                "LinearGrad", "LstmGrad", "LstmGrad", "EmbeddingGrad", "Sgd"}));
  const Tensor& inputs = workload[find(workload, "inputs")];
  EXPECT_EQ(inputs.shape, (Shape{10, 4}));
  EXPECT_EQ(inputs.type, Type::i32);
  EXPECT_EQ(workload[find(workload, "labels")].shape, (Shape{10, 4}));
  EXPECT_EQ(workload[first_of<Embedding>(step).tokens].shape, (Shape{3, 4}));
  EXPECT_EQ(workload[first_of<Embedding>(step).y].shape, (Shape{4, 3, 5}));
  EXPECT_EQ(workload[first_of<Lstm>(step).gates].shape, (Shape{4, 3, 20}));
  EXPECT_EQ(workload[first_of<SoftmaxCrossEntropy>(step).logits].shape, (Shape{4, 3, 11}));
  EXPECT_EQ(workload[first_of<SoftmaxCrossEntropy>(step).labels].shape, (Shape{3, 4}));
  // The last batch of the epoch has one row.
  EXPECT_EQ(workload[first_of<Lstm>(workload.steps[1]).h].shape, (Shape{4, 1, 5}));
}

TEST(LoweringSequences, CastsNeitherTokensNorBiasesOfTheLstm) {
  const Workload workload =
      training_epoch(language_model(few_words), {.rows = 3,
                                                 .batch = 3,
                                                 .optimizer = SgdOptions{},
                                                 .accumulate = 1,
                                                 .precision = Precision::f16});
  EXPECT_NO_THROW(check(workload, Precision::f16));
  std::vector<std::string> cast;
  for (const Op& op : workload.steps[0].ops) {
    if (const auto* found = std::get_if<Cast>(&op)) {
      cast.push_back(workload[found->x].name);
    }
  }
  EXPECT_EQ(cast,
            (std::vector<std::string>{"layer 0 table", "layer 1 weight of inputs",
                                      "layer 1 weight of recurrence", "layer 2 weight of inputs",
                                      "layer 2 weight of recurrence", "layer 3 weight"}));
  EXPECT_EQ(workload[first_of<Embedding>(workload.steps[0]).tokens].role, Role::input);
  EXPECT_EQ(workload[first_of<Lstm>(workload.steps[0]).c].type, Type::f32);
}

TEST(LoweringSequences, ReadsTheLabelOfEachPlace) {
  // Logits that hang on the token alone: the loss is that of a table of tokens.
  Model model{.name = "m",
              .sample = {3},
              .sample_type = Type::i32,
              .classes = 5,
              .labels = {3},
              .layers = {}};
  model.add(EmbeddingLayer{.vocabulary = 5, .width = 5}, {0});
  const Workload workload = training_epoch(model, {.rows = 4, .batch = 2, .optimizer = {}});
  const Dataset data = uniform_tokens(3, 4, 5);
  Reference reference(workload);
  set_data(reference, data);
  restart(reference);
  const std::vector<double> table = copy(reference[find(workload, "layer 0 table")]);
  reference.run(0, 1);
  double expected = 0;
  for (std::size_t place = 0; place < 6; ++place) {
    const double* logits = table.data() + 5 * static_cast<std::size_t>(data.inputs[place]);
    double sum = 0;
    for (int c = 0; c < 5; ++c) {
      sum += std::exp(logits[c]);
    }
    expected += (std::log(sum) - logits[data.labels[place]]) / 6;
  }
  EXPECT_NEAR(reference[find(workload, "loss")][0], expected, 1e-14);
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

  Model sequence{.name = "m", .sample = {4}, .sample_type = Type::i32, .classes = 3, .layers = {}};
  sequence.add(EmbeddingLayer{.vocabulary = 9, .width = 3}, {0});
  EXPECT_EQ(
      message(sequence, fine),
      "model 'm': the last layer gives [4, 3] a sample, not one number for each of 3 classes");
  sequence.labels = {5};
  EXPECT_EQ(message(sequence, fine),
            "model 'm': the last layer gives [4, 3] a sample, not one number for each of 3 classes "
            "and time step");
  sequence.add(FlattenLayer{}, {1});
  EXPECT_EQ(message(sequence, fine), "model 'm': layer 1 can't flatten what lies time first");

  const auto of_rows = [&](const Shape& sample, const LayerKind& kind) {
    Model model{.name = "m", .sample = sample, .classes = 3, .layers = {}};
    model.add(kind, {0});
    return message(model, fine);
  };
  EXPECT_EQ(of_rows({}, LinearLayer{3}), "model 'm': layer 0 reads single numbers, not vectors");
  EXPECT_EQ(of_rows({4, 4}, LstmLayer{3}),
            "model 'm': layer 0 reads sequences of vectors, time first");
  EXPECT_EQ(of_rows({4, 4}, EmbeddingLayer{9, 3}), "model 'm': layer 0 reads sequences of tokens");
  EXPECT_EQ(of_rows({4, 4}, BatchNormLayer{}),
            "model 'm': layer 0 reads images of channels, height and width");
  EXPECT_EQ(of_rows({1, 4, 3}, ConvolutionLayer{2, {.size = 6, .padding = 1}}),
            "model 'm': layer 0 has a window of 6 with padding 1, larger than the image of 4 x 3");
  EXPECT_EQ(of_rows({4}, DropoutLayer{1}), "model 'm': layer 0 drops with a probability in [0, 1)");

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
