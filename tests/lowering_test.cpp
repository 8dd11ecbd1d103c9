// SPDX-License-Identifier: Apache-2.0
// What training_epoch() and fuse() put into the list for networks of layers of units.
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

TEST(Lowering, ComparesWithTargetsWhereTheLossDoes) {
  const Workload workload =
      training_epoch(mlp("m", {4, 3, 1}, Activation::tanh, LossFunction::bce),
                     {.rows = 10, .batch = 5, .optimizer = {}, .accumulate = 2});
  const auto& loss = std::get<ElementwiseLoss>(workload.steps[0].ops[3]);
  EXPECT_EQ(loss.function, LossFunction::bce);
  EXPECT_EQ(loss.scale, 0.5);
  EXPECT_EQ(workload[loss.targets].source, find(workload, "targets"));
  EXPECT_EQ(workload[find(workload, "targets")].shape, (Shape{10, 1}));
  EXPECT_EQ(workload[find(workload, "targets")].type, Type::f32);
  EXPECT_NO_THROW(check(workload));
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
    updates.push_back(std::holds_alternative<Update>(step.ops.back()));
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
  const std::vector<Model> models{residual_model(), small_alexnet(),
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
      } else if (const auto* update = std::get_if<Update>(&op)) {
        found.second = update->gradient_factor;
      }
    }
    return found;
  };
  for (const Optimizer& optimizer :
       {Optimizer{SgdOptions{}}, Optimizer{MomentumOptions{}}, Optimizer{AdamWOptions{}}}) {
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
  for (const Optimizer& optimizer : {Optimizer{SgdOptions{}}, Optimizer{MomentumOptions{}},
                                     Optimizer{AdamWOptions{.learning_rate = 0.01}}}) {
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

TEST(Lowering, DecaysMatricesOnly) {
  const Workload workload =
      training_epoch(mlp("m", {4, 3, 2}, Activation::relu),
                     {.rows = 5, .batch = 5, .optimizer = AdamWOptions{.weight_decay = 0.5}});
  const auto& adamw = std::get<Update>(workload.steps[0].ops.back());
  EXPECT_EQ(adamw.weight_decay, (std::vector<double>{0.5, 0, 0.5, 0}));
}

TEST(Lowering, SaysWhatDoesNotFit) {
  const auto message = [](const Model& model, const TrainingOptions& options) {
    return behind("model 'm': ", message_of<std::invalid_argument>(
                                     [&] { static_cast<void>(training_epoch(model, options)); }));
  };
  const TrainingOptions fine{.rows = 5, .batch = 5, .optimizer = SgdOptions{}};
  Model mismatched{.name = "m", .sample = {4}, .classes = 4, .layers = {}};
  mismatched.add(AddLayer{}, {0, mismatched.add(LinearLayer{3}, {0})});
  EXPECT_EQ(message(mismatched, fine), "layer 1 adds values of different shapes");

  Model wrong_classes{.name = "m", .sample = {4}, .classes = 7, .layers = {}};
  wrong_classes.add(LinearLayer{3}, {0});
  EXPECT_EQ(message(wrong_classes, fine),
            "the last layer gives [3] a sample, not one number for each of 7 classes");

  Model sequence_of_targets = wrong_classes;
  sequence_of_targets.loss = LossFunction::mse;
  EXPECT_EQ(message(sequence_of_targets, fine),
            "the last layer gives [3] a sample, not one number for each of 7 targets");
  sequence_of_targets.labels = {5};
  EXPECT_EQ(message(sequence_of_targets, fine), "the loss mse takes no places of a sequence");

  Model ahead{.name = "m", .sample = {4}, .classes = 3, .layers = {}};
  ahead.add(LinearLayer{3}, {1});
  EXPECT_EQ(message(ahead, fine), "a layer reads a value not made before it");

  Model sequence{.name = "m", .sample = {4}, .sample_type = Type::i32, .classes = 3, .layers = {}};
  sequence.add(EmbeddingLayer{.vocabulary = 9, .width = 3}, {0});
  EXPECT_EQ(message(sequence, fine),
            "the last layer gives [4, 3] a sample, not one number for each of 3 classes");
  sequence.labels = {5};
  EXPECT_EQ(message(sequence, fine),
            "the last layer gives [4, 3] a sample, not one number for each of 3 classes "
            "and time step");
  sequence.add(FlattenLayer{}, {1});
  EXPECT_EQ(message(sequence, fine), "layer 1 can't flatten what lies time first");

  const auto of_rows = [&](const Shape& sample, const LayerKind& kind) {
    Model model{.name = "m", .sample = sample, .classes = 3, .layers = {}};
    model.add(kind, {0});
    return behind("layer 0 ", message(model, fine));
  };
  EXPECT_EQ(of_rows({}, LinearLayer{3}), "reads single numbers, not vectors");
  EXPECT_EQ(of_rows({4, 4}, LstmLayer{3}), "reads sequences of vectors, time first");
  EXPECT_EQ(of_rows({4, 4}, EmbeddingLayer{9, 3}), "reads sequences of tokens");
  EXPECT_EQ(of_rows({4, 4}, PositionEmbeddingLayer{}), "reads sequences of vectors, time first");
  EXPECT_EQ(of_rows({}, LayerNormLayer{}), "reads single numbers, not vectors");
  EXPECT_EQ(of_rows({4}, tied_linear(3, 0)),
            "is tied to layer 0, which is no embedding before it with a table "
            "of [3, 4]");
  EXPECT_EQ(of_rows({4}, LinearLayer{.out_features = 3, .has_bias = true, .tied = 0}),
            "is tied to an embedding, which has no bias: leave that out");
  EXPECT_EQ(of_rows({4}, ConcatenateLayer{}), "reads one value, and joins two or more");
  EXPECT_EQ(of_rows({4}, ToSequenceLayer{}), "reads images of channels, height and width");
  EXPECT_EQ(of_rows({4}, ToImageLayer{}), "reads sequences of vectors, time first");
  EXPECT_EQ(of_rows({4}, ToImageLayer{.height = 3, .channels = 2}),
            "makes no image of 2 channels and height 3 of 4 places");
  EXPECT_EQ(of_rows({4}, ClassTokenLayer{}), "reads sequences of vectors, time first");
  EXPECT_EQ(of_rows({4}, OnePlaceLayer{}), "reads sequences of vectors, time first");
  EXPECT_EQ(of_rows({4, 4}, SoftmaxLayer{}), "reads vectors, or sequences of them, time first");
  EXPECT_EQ(of_rows({4}, SoftmaxLayer{.heads = 3}), "divides a width of 4 into 3 heads");
  EXPECT_EQ(of_rows({4}, GruLayer{3}), "reads sequences of vectors, time first");
  EXPECT_EQ(of_rows({4}, SliceLayer{.from = 2, .to = 5}), "slices 2 to 5 of 4");
  EXPECT_EQ(of_rows({4}, SliceLayer{.from = 2, .to = 2}), "slices 2 to 2 of 4");
  EXPECT_EQ(of_rows({4}, SliceLayer{.to = 2, .over_time = true}),
            "reads sequences of vectors, time first");
  const auto of_two = [&](const LayerKind& kind) {
    Model model{.name = "m", .sample = {2, 4, 4}, .classes = 3, .layers = {}};
    model.add(kind, {0, model.add(MaxPoolLayer{{.size = 2, .stride = 2}}, {0})});
    return message(model, fine);
  };
  Model rows{.name = "m", .sample = {4}, .classes = 3, .layers = {}};
  rows.add(MatmulLayer{}, {0, rows.add(LinearLayer{6}, {0})});
  EXPECT_EQ(message(rows, fine), "layer 1 multiplies 4 numbers by 1");
  EXPECT_EQ(of_two(ConcatenateLayer{}), "layer 1 joins values of different shapes");
  EXPECT_EQ(of_two(MultiplyLayer{}),
            "layer 1 multiplies by neither a value of the same shape nor a number for "
            "all pixels or time steps");
  Model heads{.name = "m", .sample = {4}, .sample_type = Type::i32, .classes = 3, .layers = {}};
  heads.add(AttentionLayer{2}, {heads.add(EmbeddingLayer{9, 9}, {0})});
  EXPECT_EQ(message(heads, fine),
            "layer 1 reads queries, keys and values of 2 heads, which do not divide a "
            "width of 9 by three times their number");
  heads.layers.back().kind = tied_linear(3, 0);
  EXPECT_EQ(message(heads, fine),
            "layer 1 is tied to layer 0, which is no embedding before it with a table "
            "of [3, 9]");
  EXPECT_EQ(of_rows({4, 4}, BatchNormLayer{}), "reads images of channels, height and width");
  EXPECT_EQ(of_rows({1, 4, 3}, ConvolutionLayer{2, {.size = 6, .padding = 1}}),
            "has a window of 6 with padding 1, larger than the image of 4 x 3");
  EXPECT_EQ(
      of_rows({4, 3, 3},
              TransposedConvolutionLayer{.out_channels = 3, .window = {.size = 2}, .groups = 3}),
      "has 3 groups, which must divide its 4 input and 3 output channels");
  EXPECT_EQ(of_rows({1, 3, 3},
                    TransposedConvolutionLayer{
                        .out_channels = 3, .window = {.size = 2}, .output_padding = 1}),
            "has a padding of 0 and an output_padding of 1, which must be below "
            "its window's extent and its stride");
  EXPECT_EQ(of_rows({1, 1, 1}, TransposedConvolutionLayer{3, {.size = 3, .padding = 2}}),
            "has a padding of 2, which leaves nothing of the image");
  EXPECT_EQ(of_rows({4, 3, 3}, GroupNormLayer{3}),
            "has 3 groups, which must divide its 4 channels");
  EXPECT_EQ(of_rows({1, 1, 5}, UpsampleLayer{1 << 30}),
            "gives images of more than 2^31 rows or columns");
  EXPECT_EQ(of_rows({4}, DropoutLayer{1}), "drops with a probability in [0, 1)");

  const Model sound = mlp("m", {4, 3}, Activation::relu);
  EXPECT_EQ(message(sound, {.rows = 0, .batch = 5}), "rows must be at least one");
  EXPECT_EQ(message(sound, {.rows = 5, .batch = 0}), "the batch must be at least one");
  EXPECT_EQ(message({.name = "m", .sample = {4}, .classes = 3, .layers = {}}, fine),
            "the model has no layers");
}

}  // namespace
}  // namespace crossover::test
