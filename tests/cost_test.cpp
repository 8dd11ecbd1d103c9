// SPDX-License-Identifier: Apache-2.0
#include "crossover/cost.h"

#include <gtest/gtest.h>

#include "crossover/catalogue.h"
#include "support.h"

namespace crossover::test {
namespace {

/// Of one operation, whose tensors, numbered from 0, have these shapes, in f32 where no type is
/// said.
Cost cost_of(const std::vector<Shape>& shapes, Op op, const std::vector<Type>& types = {}) {
  OneOp one;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    one.tensor("t", shapes[i], Role::activation, i < types.size() ? types[i] : Type::f32);
  }
  return cost(one.operation(std::move(op)).workload);
}

double flops_of(const std::vector<Shape>& shapes, Op op, const std::vector<Type>& types = {}) {
  return cost_of(shapes, std::move(op), types).flops;
}

TEST(Cost, CountsAFusedLinearByHand) {
  const Cost c = cost_of({{10, 4}, {3, 4}, {3}, {10, 3}},
                         Linear{.x = 0, .w = 1, .bias = 2, .y = 3, .activation = Activation::relu});
  EXPECT_EQ(c.flops, 2 * 10 * 4 * 3 + 30 + 30);
  EXPECT_EQ(c.bytes, 4 * (40 + 12 + 3 + 30));
  EXPECT_EQ(c.launches, 2);
}

TEST(Cost, CountsAGradientByHand) {
  const Cost c = cost_of(
      {{10, 4}, {3, 4}, {10, 3}, {10, 4}, {3, 4}, {3}},
      LinearGrad{
          .x = 0, .w = 1, .dy = 2, .dx = 3, .dw = 4, .dbias = 5, .x_activation = Activation::relu});
  EXPECT_EQ(c.flops, 2 * (2 * 10 * 4 * 3) + 30 + 40);
  EXPECT_EQ(c.launches, 4);
  EXPECT_EQ(c.bytes, 4 * (40 + 12 + 30 + 40 + 12 + 3));
}

TEST(Cost, CountsGradientsSetToZeroByHand) {
  const Cost c = cost_of({{3, 4}, {3}}, Zero{{0, 1}});
  EXPECT_EQ(c.flops, 0);
  EXPECT_EQ(c.bytes, 4 * (12 + 3));
  EXPECT_EQ(c.launches, 1);
}

TEST(Cost, CountsActivationsByHand) {
  const std::vector<Shape> shapes{{10, 3}};
  const auto per_element = [&](Activation activation) {
    return std::pair(
        flops_of(shapes, Activate{.x = 0, .y = 0, .activation = activation}) / 30,
        flops_of(shapes, ActivateGrad{.at = 0, .dy = 0, .dx = 0, .activation = activation}) / 30);
  };
  EXPECT_EQ(per_element(Activation::identity), std::pair(0.0, 0.0));
  EXPECT_EQ(per_element(Activation::tanh), std::pair(4.0, 3.0));
  // x * (erfc(c x) / 2), and that / 2 + x * (exp(-x * x / 2) * c), times the gradient
  EXPECT_EQ(per_element(Activation::gelu), std::pair(4.0, 10.0));
  EXPECT_EQ(per_element(Activation::silu), std::pair(5.0, 9.0));
  EXPECT_EQ(per_element(Activation::relu6), std::pair(2.0, 2.0));
  const functions::Softplus
      softplus;  // max(x, 0) + log1p(exp(-|x|)); e / (1 + e), times the gradient
  EXPECT_EQ(flops_of(shapes, Map{.x = 0, .y = 0, .function = softplus}), 5 * 30);
  EXPECT_EQ(flops_of(shapes, MapGrad{.x = 0, .dy = 0, .dx = 0, .function = softplus}), 5 * 30);
}

TEST(Cost, CountsMomentumByHand) {
  const Cost c = cost_of(
      {{3, 4}, {3, 4}, {3, 4}},
      Update{.rule = MomentumOptions{}, .parameters = {0}, .gradients = {1}, .states = {{2}}});
  EXPECT_EQ(c.flops, 4 * 12);
  EXPECT_EQ(c.bytes, 4 * 5 * 12);
}

TEST(Cost, CountsAProductByHand) {
  const Cost c = cost_of({{7, 10}, {3, 7}, {10, 3}},
                         Gemm{.a = 0, .b = 1, .c = 2, .transpose_a = true, .transpose_b = true});
  EXPECT_EQ(c.flops, 2 * 10 * 3 * 7);
  EXPECT_EQ(c.bytes, 4 * (70 + 21 + 30));
}

TEST(Cost, CountsAConvolutionAsIfNothingWerePadding) {
  const Window window{.size = 3, .stride = 2, .padding = 1};
  const std::vector<Shape> shapes{{2, 4, 7, 8}, {5, 4, 3, 3}, {2, 5, 4, 4}, {5}};
  const double product = 2.0 * (2 * 5 * 4 * 4) * (4 * 3 * 3);
  EXPECT_EQ(flops_of(shapes, Convolution{.x = 0, .w = 1, .y = 2, .window = window}), product);
  EXPECT_EQ(
      flops_of(
          shapes,
          Convolution{
              .x = 0, .w = 1, .bias = 3, .y = 2, .window = window, .activation = Activation::relu}),
      product + 160 + 160);
  EXPECT_EQ(flops_of(shapes, ConvolutionGrad{.x = 0, .w = 1, .dy = 2, .dw = 1, .window = window}),
            product);
  EXPECT_EQ(flops_of(shapes,
                     ConvolutionGrad{
                         .x = 0, .w = 1, .dy = 2, .dx = 0, .dw = 1, .dbias = 3, .window = window}),
            2 * product + 160);
  EXPECT_EQ(flops_of(shapes, ConvolutionGrad{.w = 1, .dy = 2, .dx = 0, .window = window}), product);
  EXPECT_EQ(
      flops_of(shapes, ConvolutionGrad{.w = 1, .dy = 2, .dx = 0, .window = window, .bias = 3}),
      product + 2 * 4 * 7 * 8);
  EXPECT_EQ(flops_of(shapes, ChannelBiasGrad{.dy = 2, .dbias = 3}), 160);
}

TEST(Cost, CountsGroupNormalizationAsThatOfBatches) {
  const std::vector<Shape> shapes{{2, 6, 4, 5}, {6}, {2, 3}};
  EXPECT_EQ(flops_of(shapes, Norm{.kind = NormKind::group,
                                  .x = 0,
                                  .scale = 1,
                                  .shift = 1,
                                  .y = 0,
                                  .mean = 2,
                                  .inverse_deviation = 2,
                                  .groups = 3}),
            7 * 240);
  EXPECT_EQ(flops_of(shapes, NormGrad{.kind = NormKind::group,
                                      .x = 0,
                                      .scale = 1,
                                      .mean = 2,
                                      .inverse_deviation = 2,
                                      .dy = 0,
                                      .dx = 0,
                                      .dscale = 1,
                                      .dshift = 1,
                                      .groups = 3}),
            10 * 240);
}

TEST(Cost, CountsOfAGroupsInputsOnly) {
  const Window window{.size = 3, .padding = 2, .dilation = 2};
  const std::vector<Shape> shapes{{2, 6, 7, 8}, {4, 3, 3, 3}, {2, 4, 7, 8}};
  const double product = 2.0 * (2 * 4 * 7 * 8) * (3 * 3 * 3);
  EXPECT_EQ(flops_of(shapes, Convolution{.x = 0, .w = 1, .y = 2, .window = window}), product);
  EXPECT_EQ(flops_of(shapes,
                     ConvolutionGrad{.x = 0, .w = 1, .dy = 2, .dx = 0, .dw = 1, .window = window}),
            2 * product);
}

TEST(Cost, CountsTheNeighboursOfPixelsBetweenThem) {
  const std::vector<Shape> images{{2, 6, 4, 8}, {2, 6, 5, 3}, {2, 6, 4, 3}};
  const double of_four = 2.0 * 4 * (2 * 6 * 5 * 3);
  EXPECT_EQ(flops_of(images, Resample{.x = 0, .y = 1}), of_four);
  EXPECT_EQ(flops_of(images, Resample{.x = 1, .y = 0, .transposed = true}), of_four);
  EXPECT_EQ(flops_of(images, Resample{.x = 0, .y = 2}), 2.0 * 2 * (2 * 6 * 4 * 3));
}

TEST(Cost, CountsEachDirectionOfAWindow) {
  const Window line{.size = {1, 5}, .stride = {1, 2}, .padding = {0, 2}};
  const std::vector<Shape> shapes{{2, 6, 1, 8}, {4, 6, 1, 5}, {2, 4, 1, 4}};
  const double product = 2.0 * (2 * 4 * 4) * (6 * 5);
  EXPECT_EQ(flops_of(shapes, Convolution{.x = 0, .w = 1, .y = 2, .window = line}), product);
  const std::vector<Shape> images{{2, 6, 4, 8}, {2, 6, 4, 4}};
  EXPECT_EQ(flops_of(images, Pool{.kind = PoolKind::average,
                                  .x = 0,
                                  .y = 1,
                                  .window = {.size = {1, 2}, .stride = {1, 2}}}),
            2 * (2 * 6 * 4 * 4));
  const auto repeats = [&](const Window& window) {
    return flops_of(images, PoolGrad{.kind = PoolKind::sum, .dy = 1, .dx = 0, .window = window});
  };
  EXPECT_EQ(repeats({.size = {1, 2}, .stride = {1, 2}}), 0);
  EXPECT_EQ(repeats({.size = {1, 3}, .stride = {1, 2}, .padding = {0, 1}}), 3 * (2 * 6 * 4 * 4));
}

TEST(Cost, CountsWhatWinogradsProductsSave) {
  const std::vector<Shape> shapes{{2, 4, 7, 8}, {5, 4, 3, 3}, {2, 5, 7, 8}, {5}};
  const double product = 2.0 * (2 * 5 * 7 * 8) * (4 * 3 * 3);
  const auto avoidable = [&](const Window& window, Type type) {
    return cost_of(shapes,
                   ConvolutionGrad{
                       .x = 0, .w = 1, .dy = 2, .dx = 0, .dw = 1, .dbias = 3, .window = window},
                   std::vector(shapes.size(), type))
        .avoidable_flops;
  };
  const Window same{.size = 3, .padding = 1};
  EXPECT_DOUBLE_EQ(avoidable(same, Type::f32), 2 * product * 20 / 36);
  EXPECT_EQ(avoidable(same, Type::bf16), 0);
  EXPECT_EQ(avoidable({.size = 3, .stride = 2, .padding = 1}, Type::f32), 0);
  EXPECT_EQ(avoidable({.size = 5, .padding = 2}, Type::f32), 0);
  EXPECT_EQ(avoidable({.size = {3, 1}, .padding = {1, 0}}, Type::f32), 0);
}

TEST(Cost, CountsPoolingByHand) {
  const Window window{.size = 3, .stride = 2, .ceil = true};
  const std::vector<Shape> shapes{{2, 5, 8, 6}, {2, 5, 4, 3}};
  const double windows = 2 * 5 * 4 * 3;
  const double image = 2 * 5 * 8 * 6;
  EXPECT_EQ(flops_of(shapes, Pool{.kind = PoolKind::average, .x = 0, .y = 1, .window = window}),
            9 * windows);
  EXPECT_EQ(
      flops_of(shapes, PoolGrad{.kind = PoolKind::average, .dy = 1, .dx = 0, .window = window}),
      9 * windows);
  EXPECT_EQ(flops_of(shapes, PoolGrad{.kind = PoolKind::average,
                                      .made = 0,
                                      .dy = 1,
                                      .dx = 0,
                                      .window = window,
                                      .x_activation = Activation::sigmoid}),
            9 * windows + 3 * image);
  const std::vector<Shape> of_max{shapes[0], shapes[1], shapes[1]};
  const std::vector<Type> types{Type::f32, Type::f32, Type::u8};
  const Cost c = cost_of(of_max, Pool{.x = 0, .y = 1, .where = 2, .window = window}, types);
  EXPECT_EQ(c.flops, 9 * windows);
  EXPECT_EQ(c.bytes, 4 * (image + windows) + windows);
  EXPECT_EQ(flops_of(of_max,
                     PoolGrad{.made = 1,
                              .where = 2,
                              .dy = 1,
                              .dx = 0,
                              .window = window,
                              .x_activation = Activation::relu},
                     types),
            2 * windows);
  const std::vector<Shape> whole{{2, 5, 8, 6}, {2, 5}};
  EXPECT_EQ(flops_of(whole, Pool{.kind = PoolKind::global_average, .x = 0, .y = 1}), image);
  EXPECT_EQ(flops_of(whole, PoolGrad{.kind = PoolKind::global_average, .dy = 1, .dx = 0}), image);
  EXPECT_EQ(flops_of(whole, Multiply{.a = 0, .b = 1, .y = 0}), image);
  EXPECT_EQ(flops_of(whole, MultiplyGrad{.a = 0, .b = 1, .dy = 0, .da = 0, .db = 1}), 3 * image);
  EXPECT_EQ(flops_of(whole, MultiplyGrad{.a = 0, .b = 0, .dy = 0, .da = 0, .db = 0}), 2 * image);
  EXPECT_EQ(flops_of({{2, 5, 8, 6}, {48, 2, 5}},
                     Rearrange{.x = {0}, .y = {1}, .blocks = as_sequence({2, 5, 8, 6})}),
            0);
}

TEST(Cost, CountsBatchNormByHand) {
  const std::vector<Shape> shapes{{2, 5, 4, 3}, {5}};
  const double image = 2 * 5 * 4 * 3;
  Norm op{.x = 0, .scale = 1, .shift = 1, .y = 0, .mean = 1, .inverse_deviation = 1};
  EXPECT_EQ(flops_of(shapes, op), 7 * image);
  op.addend = 0;
  op.activation = Activation::relu;
  EXPECT_EQ(flops_of(shapes, op), 9 * image);
  NormGrad grad{.x = 0,
                .scale = 1,
                .mean = 1,
                .inverse_deviation = 1,
                .dy = 0,
                .dx = 0,
                .dscale = 1,
                .dshift = 1};
  EXPECT_EQ(flops_of(shapes, grad), 10 * image);
  grad.y = 0;
  grad.dy_more = 0;
  grad.activation = Activation::relu;
  EXPECT_EQ(flops_of(shapes, grad), 12 * image);
}

/// time 3, batch 2, from 5 to 4; the first time step has no state to multiply by.
TEST(Cost, CountsRecurrencesByHand) {
  struct Elementwise {
    double forward, backward;  ///< besides products
  };
  for (const auto& [cell, of] :
       {std::pair{Cell{LstmCell{}}, Elementwise{7 * 96 + 8 * 24, 5 * 96 + 10 * 24}},
        {GruCell{}, {7 * 72 + 5 * 24, 6 * 72 + 8 * 24}}}) {
    const std::int64_t wide = 4 * facts_of(cell).gates;
    const std::vector<Shape> shapes{{3, 2, 5}, {wide, 5},    {wide, 4}, {wide},
                                    {3, 2, 4}, {3, 2, wide}, {2, 2, 4}, {2, 4}};
    const double inputs = 2.0 * (3 * 2) * static_cast<double>(wide) * 5;
    const double states = 2.0 * (2 * 2) * static_cast<double>(wide) * 4;
    EXPECT_EQ(flops_of(shapes, Recurrent{.cell = cell,
                                         .x = 0,
                                         .w_ih = 1,
                                         .w_hh = 2,
                                         .b_ih = 3,
                                         .b_hh = 3,
                                         .h = 4,
                                         .gates = 5,
                                         .kept = 4}),
              inputs + states + of.forward);
    const CellFacts facts = facts_of(cell);
    RecurrentGrad grad{.cell = cell,
                       .x = 0,
                       .w_ih = 1,
                       .w_hh = 2,
                       .h = 4,
                       .gates = 5,
                       .kept = 4,
                       .dh = 4,
                       .di = 5,
                       .dk = facts.is_apart ? 5 : none,
                       .carry = facts.keeps_state ? 6 : 7,
                       .dw_ih = 1,
                       .dw_hh = 2,
                       .db_ih = 3,
                       .db_hh = 3};
    EXPECT_EQ(flops_of(shapes, grad), inputs + 2 * states + of.backward);
    grad.dx = 0;
    EXPECT_EQ(flops_of(shapes, grad), 2 * inputs + 2 * states + of.backward);
  }
}

TEST(Cost, CountsLossesByHand) {
  EXPECT_EQ(flops_of({{3, 2, 7}, {2, 3}, {1}},
                     SoftmaxCrossEntropy{.logits = 0, .labels = 1, .loss = 2, .dlogits = 0},
                     {Type::f32, Type::i32}),
            5 * 42 + 2 * 6);
  ElementwiseLoss of_each{.logits = 0, .targets = 0, .loss = 0, .dlogits = 0};
  EXPECT_EQ(flops_of({{6, 7}}, of_each), 4 * 42);
  of_each.function = LossFunction::bce;
  EXPECT_EQ(flops_of({{6, 7}}, of_each), 14 * 42);
  const std::vector<Shape> rows{{6, 7}, {42}};
  EXPECT_EQ(flops_of(rows, Reshape{.x = 0, .y = 1}), 0);
}

TEST(Cost, CountsATransformersOperationsByHand) {
  const std::vector<Shape> rows{{3, 2, 5}, {5}, {3, 2}};
  EXPECT_EQ(flops_of(rows, Norm{.kind = NormKind::layer,
                                .x = 0,
                                .scale = 1,
                                .shift = 1,
                                .y = 0,
                                .mean = 2,
                                .inverse_deviation = 2}),
            8 * 30);
  NormGrad norm{.kind = NormKind::layer,
                .x = 0,
                .scale = 1,
                .mean = 2,
                .inverse_deviation = 2,
                .dy = 0,
                .dscale = 1,
                .dshift = 1};
  EXPECT_EQ(flops_of(rows, norm), 5 * 30);
  norm.dx = 0;
  EXPECT_EQ(flops_of(rows, norm), 13 * 30);
  norm.mean = norm.dshift = none;
  EXPECT_EQ(flops_of(rows, norm), 9 * 30);
  EXPECT_EQ(
      flops_of(rows,
               Norm{.kind = NormKind::layer, .x = 0, .scale = 1, .y = 0, .inverse_deviation = 2}),
      4 * 30);
  EXPECT_EQ(
      flops_of(rows,
               Norm{.kind = NormKind::layer, .x = 0, .y = 0, .mean = 2, .inverse_deviation = 2}),
      6 * 30);
  norm = {.kind = NormKind::layer, .x = 0, .mean = 2, .inverse_deviation = 2, .dy = 0, .dx = 0};
  EXPECT_EQ(flops_of(rows, norm), 9 * 30);
  const std::vector<Shape> places{{3, 2, 5}, {3, 5}};
  EXPECT_EQ(flops_of(places, PositionEmbedding{.x = 0, .table = 1, .y = 0}), 30);
  EXPECT_EQ(flops_of(places, PositionEmbeddingGrad{.dy = 0, .dtable = 1}), 30);
  // time 3, batch 2, two heads of 5
  const std::vector<Shape> heads{{3, 2, 30}, {3, 2, 10}, {2, 2, 3}};
  for (const bool causal : {false, true}) {
    const double pairs = 2 * 2 * (causal ? 6 : 9);
    EXPECT_EQ(
        flops_of(heads, Attention{.qkv = 0, .y = 1, .log_sums = 2, .heads = 2, .causal = causal}),
        2 * (2 * pairs * 5) + 6 * pairs);
    EXPECT_EQ(
        flops_of(
            heads,
            AttentionGrad{
                .qkv = 0, .y = 1, .log_sums = 2, .dy = 1, .dqkv = 0, .heads = 2, .causal = causal}),
        5 * (2 * pairs * 5) + 6 * pairs + 2 * 60);
  }
}

TEST(Cost, CountsProductsOfSequencesByHand) {
  // time 3, batch 2, two heads of 5, with four keys
  const std::vector<Shape> of{{3, 2, 10}, {4, 2, 10}, {3, 2, 8}};
  Matmul scores{.a = 0, .b = 1, .y = 2, .heads = 2, .transpose_b = true};
  EXPECT_EQ(flops_of(of, scores), 2 * 5 * 48);
  scores.scale = 0.5;
  EXPECT_EQ(flops_of(of, scores), (2 * 5 + 1) * 48);
  EXPECT_EQ(flops_of(of, Softmax{.x = 2, .y = 2, .heads = 2}), 5 * 48);
  EXPECT_EQ(flops_of(of, Softmax{.x = 2, .y = 2, .heads = 2, .causal = true}),
            5 * 2 * 2 * (1 + 2 + 3));
  EXPECT_EQ(flops_of(of, SoftmaxGrad{.y = 2, .dy = 2, .dx = 2, .heads = 2}), 4 * 48);
}

TEST(Cost, CountsWhatIsKeptAndLookedUp) {
  EXPECT_EQ(flops_of({{6, 7}, {1}}, Dropout{.x = 0, .y = 0, .step = 1}, {Type::f32, Type::i32}),
            42);
  const std::vector<Shape> words{{2, 3}, {9, 4}, {3, 2, 4}};
  EXPECT_EQ(flops_of(words, Embedding{.tokens = 0, .table = 1, .y = 2}, {Type::i32}), 0);
  EXPECT_EQ(flops_of(words, EmbeddingGrad{.tokens = 0, .dy = 2, .dtable = 1}, {Type::i32}), 24);
}

TEST(Cost, CountsBytesByType) {
  EXPECT_EQ(cost_of({{10, 4}, {3, 4}, {3}, {10, 3}}, Linear{.x = 0, .w = 1, .bias = 2, .y = 3},
                    {Type::bf16, Type::bf16})
                .bytes,
            2 * (40 + 12) + 4 * (3 + 30));
  const Cost c = cost_of({{100}, {100}}, Cast{.x = 0, .y = 1}, {Type::f32, Type::f16});
  EXPECT_EQ(c.flops, 0);
  EXPECT_EQ(c.bytes, 4 * 100 + 2 * 100);
  EXPECT_EQ(c.launches, 1);
}

TEST(Cost, OfAnEpochIsTheSumOverItsBatches) {
  const Model model = mlp("m", {4, 3, 2}, Activation::relu);
  const auto flops = [&](std::int64_t rows) {
    return cost(training_epoch(model, {.rows = rows, .batch = 5, .optimizer = SgdOptions{}})).flops;
  };
  EXPECT_DOUBLE_EQ(flops(13), 2 * flops(5) + flops(3));
}

TEST(Cost, FusingSavesBytesAndKeepsOperations) {
  const Task task = find_model("disc-8");
  const Workload plain =
      training_epoch(task.model, {.rows = 1000, .batch = 100, .optimizer = task.optimizer});
  const Cost before = cost(plain);
  const Cost after = cost(fuse(plain));
  EXPECT_DOUBLE_EQ(before.flops, after.flops);
  EXPECT_EQ(before.launches, after.launches);
  EXPECT_LT(after.bytes, before.bytes);
}

TEST(Cost, IsDominatedByThreeProductsForLargeNetworks) {
  const Task task = find_model("disc-12");
  const Workload workload =
      training_epoch(task.model, {.rows = 1000, .batch = 100, .optimizer = task.optimizer});
  const double products = 3 * 2 * 1000.0 * static_cast<double>(parameter_count(workload));
  EXPECT_NEAR(cost(workload).flops / products, 1, 0.01);
}

TEST(Cost, AFootprintCountsEachTensorOnce) {
  OneOp add;
  const Id a = add.tensor("a", {3, 4});
  const Id y = add.tensor("y", {3, 4});
  add.operation(Add{.a = a, .b = a, .y = y});
  EXPECT_EQ(footprint_bytes(add.workload, add.workload.steps[0]), 2 * 12 * 4);
}

}  // namespace
}  // namespace crossover::test
