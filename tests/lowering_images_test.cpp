// SPDX-License-Identifier: Apache-2.0
// What training_epoch() puts into the list for networks of images and of sequences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "crossover/catalogue.h"
#include "crossover/networks.h"
#include "crossover/start.h"
#include "support.h"

namespace crossover::test {
namespace {

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

std::vector<std::string> cast_in_a_step(const Workload& workload) {
  std::vector<std::string> names;
  for (const Op& op : workload.steps[0].ops) {
    if (const auto* found = std::get_if<Cast>(&op)) {
      names.push_back(workload[found->x].name);
    }
  }
  return names;
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
  EXPECT_EQ(workload[first_of<Pool>(workload.steps[0]).where].type, Type::u8);
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

TEST(LoweringImages, ReadsScalesAsTheyAre) {
  const Workload workload = training_epoch(image_model(), {.rows = 4,
                                                           .batch = 4,
                                                           .optimizer = SgdOptions{},
                                                           .accumulate = 1,
                                                           .precision = Precision::bf16});
  EXPECT_NO_THROW(check(workload, Precision::bf16));
  EXPECT_EQ(cast_in_a_step(workload),
            (std::vector<std::string>{"layer 0 weight", "layer 0 bias", "layer 7 weight", "x"}));
  const auto& convolution = first_of<Convolution>(workload.steps[0]);
  EXPECT_EQ(workload[convolution.w].type, Type::bf16);
  EXPECT_EQ(workload[convolution.bias].type, Type::bf16);
  const auto& norm = first_of<Norm>(workload.steps[0]);
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
  const auto& gradient = first_of<NormGrad>(workload.steps[0]);
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
  EXPECT_EQ(workload[first_of<Recurrent>(step).gates].shape, (Shape{4, 3, 20}));
  EXPECT_EQ(workload[first_of<SoftmaxCrossEntropy>(step).logits].shape, (Shape{4, 3, 11}));
  EXPECT_EQ(workload[first_of<SoftmaxCrossEntropy>(step).labels].shape, (Shape{3, 4}));
  // The last batch of the epoch has one row.
  EXPECT_EQ(workload[first_of<Recurrent>(workload.steps[1]).h].shape, (Shape{4, 1, 5}));
}

TEST(LoweringSequences, CastsNeitherTokensNorBiasesOfTheLstm) {
  const Workload workload =
      training_epoch(language_model(few_words), {.rows = 3,
                                                 .batch = 3,
                                                 .optimizer = SgdOptions{},
                                                 .accumulate = 1,
                                                 .precision = Precision::f16});
  EXPECT_NO_THROW(check(workload, Precision::f16));
  EXPECT_EQ(cast_in_a_step(workload),
            (std::vector<std::string>{"layer 0 table", "layer 1 weight of inputs",
                                      "layer 1 weight of recurrence", "layer 2 weight of inputs",
                                      "layer 2 weight of recurrence", "layer 3 weight"}));
  EXPECT_EQ(workload[first_of<Embedding>(workload.steps[0]).tokens].role, Role::input);
  EXPECT_EQ(workload[first_of<Recurrent>(workload.steps[0]).kept].type, Type::f32);
}

TEST(LoweringSequences, TiesAProductToTheEmbedding) {
  const Gpt sizes{.vocabulary = 11, .width = 6, .layers = 1, .heads = 2, .time = 4};
  const Workload workload =
      training_epoch(gpt(sizes), {.rows = 6, .batch = 3, .optimizer = {}, .accumulate = 2});
  EXPECT_NO_THROW(check(workload));
  const Id table = find(workload, "layer 0 table");
  const Id gradient = find(workload, "dlayer 0 table");
  const std::int64_t of_block = 12 * 6 * 6 + 13 * 6;
  EXPECT_EQ(parameter_count(workload), 11 * 6 + 4 * 6 + of_block + 2 * 6);
  EXPECT_EQ(workload[table].start.bound, 1 / std::sqrt(6.0));
  for (const Step& step : workload.steps) {
    const auto& embedding = first_of<Embedding>(step);
    const auto& first_grad = first_of<LinearGrad>(step);  // of the last layer
    EXPECT_EQ(embedding.table, table);
    EXPECT_EQ(first_grad.w, table);
    EXPECT_EQ(first_grad.dw, gradient);
    EXPECT_EQ(first_grad.dbias, none);
    // The embedding adds to what the product has written, in every step.
    EXPECT_NE(first_of<EmbeddingGrad>(step).dtable, gradient);
    const auto adds = [&](const Op& op) {
      const auto* add = std::get_if<Add>(&op);
      return add != nullptr && add->y == gradient && add->a == gradient;
    };
    EXPECT_EQ(std::count_if(step.ops.begin(), step.ops.end(), adds), 1);
  }
  EXPECT_FALSE(first_of<LinearGrad>(workload.steps[0]).accumulate);
  EXPECT_TRUE(first_of<LinearGrad>(workload.steps[1]).accumulate);
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
  const Dataset data = uniform_data(model, 4);
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

}  // namespace
}  // namespace crossover::test
