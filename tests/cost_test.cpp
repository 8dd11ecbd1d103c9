// SPDX-License-Identifier: Apache-2.0
#include "crossover/cost.h"

#include <gtest/gtest.h>

#include "crossover/catalogue.h"
#include "support.h"

namespace crossover::test {
namespace {

/// Of one operation, whose tensors, numbered from 0, have these shapes in f32.
double flops_of(const std::vector<Shape>& shapes, Op op) {
  OneOp one;
  for (const Shape& shape : shapes) {
    one.tensor("t", shape);
  }
  return cost(one.operation(std::move(op)).workload).flops;
}

TEST(Cost, CountsAFusedLinearByHand) {
  OneOp one;
  const Id x = one.tensor("x", {10, 4});
  const Id w = one.tensor("w", {3, 4}, Role::parameter);
  const Id b = one.tensor("b", {3}, Role::parameter);
  one.operation(Linear{
      .x = x, .w = w, .bias = b, .y = one.tensor("y", {10, 3}), .activation = Activation::relu});
  const Cost c = cost(one.workload);
  EXPECT_EQ(c.flops, 2 * 10 * 4 * 3 + 30 + 30);
  EXPECT_EQ(c.bytes, 4 * (40 + 12 + 3 + 30));
  EXPECT_EQ(c.launches, 2);
}

TEST(Cost, CountsAGradientByHand) {
  OneOp one;
  LinearGrad op{.x = one.tensor("x", {10, 4}),
                .w = one.tensor("w", {3, 4}, Role::parameter),
                .dy = one.tensor("dy", {10, 3}),
                .dx = one.tensor("dx", {10, 4}),
                .dw = one.tensor("dw", {3, 4}, Role::gradient),
                .dbias = one.tensor("db", {3}, Role::gradient),
                .x_activation = Activation::relu};
  const Cost c = cost(one.operation(op).workload);
  EXPECT_EQ(c.flops, 2 * (2 * 10 * 4 * 3) + 30 + 40);
  EXPECT_EQ(c.launches, 4);
  EXPECT_EQ(c.bytes, 4 * (40 + 12 + 30 + 40 + 12 + 3));
}

TEST(Cost, CountsGradientsSetToZeroByHand) {
  OneOp one;
  const Id w = one.tensor("dw", {3, 4}, Role::gradient);
  const Id b = one.tensor("db", {3}, Role::gradient);
  const Cost c = cost(one.operation(Zero{{w, b}}).workload);
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
  OneOp one;
  const Id w = one.tensor("w", {3, 4}, Role::parameter);
  const Id g = one.tensor("g", {3, 4}, Role::gradient);
  const Id v = one.tensor("v", {3, 4}, Role::state);
  const Cost c =
      cost(one
               .operation(Update{
                   .rule = MomentumOptions{}, .parameters = {w}, .gradients = {g}, .states = {{v}}})
               .workload);
  EXPECT_EQ(c.flops, 4 * 12);
  EXPECT_EQ(c.bytes, 4 * 5 * 12);
}

TEST(Cost, CountsAProductByHand) {
  OneOp one;
  const Id a = one.tensor("a", {7, 10});
  const Id b = one.tensor("b", {3, 7});
  one.operation(Gemm{
      .a = a, .b = b, .c = one.tensor("c", {10, 3}), .transpose_a = true, .transpose_b = true});
  const Cost c = cost(one.workload);
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
    OneOp one;
    for (const Shape& shape : shapes) {
      one.tensor("t", shape, Role::activation, type);
    }
    one.operation(
        ConvolutionGrad{.x = 0, .w = 1, .dy = 2, .dx = 0, .dw = 1, .dbias = 3, .window = window});
    return cost(one.workload).avoidable_flops;
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
  OneOp pool;
  const Id x = pool.tensor("x", shapes[0]);
  const Id y = pool.tensor("y", shapes[1]);
  const Id where = pool.tensor("where", shapes[1], Role::activation, Type::u8);
  pool.operation(Pool{.x = x, .y = y, .where = where, .window = window});
  EXPECT_EQ(cost(pool.workload).flops, 9 * windows);
  EXPECT_EQ(cost(pool.workload).bytes, 4 * (image + windows) + windows);
  pool.operation(PoolGrad{.made = y,
                          .where = where,
                          .dy = y,
                          .dx = x,
                          .window = window,
                          .x_activation = Activation::relu});
  EXPECT_EQ(cost(pool.workload).flops, 2 * windows);
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

TEST(Cost, CountsSequencesByHand) {
  // time 3, batch 2, in 5, hidden 4
  const std::vector<Shape> shapes{{3, 2, 5}, {16, 5},    {16, 4},  {16},
                                  {3, 2, 4}, {3, 2, 16}, {2, 2, 4}};
  const double inputs = 2.0 * (3 * 2) * 16 * 5;
  const double states = 2.0 * (2 * 2) * 16 * 4;  // the first time step has none
  EXPECT_EQ(flops_of(shapes, Recurrent{.cell = LstmCell{},
                                       .x = 0,
                                       .w_ih = 1,
                                       .w_hh = 2,
                                       .b_ih = 3,
                                       .b_hh = 3,
                                       .h = 4,
                                       .gates = 5,
                                       .kept = 4}),
            inputs + states + 7 * 96 + 8 * 24);
  RecurrentGrad grad{.cell = LstmCell{},
                     .x = 0,
                     .w_ih = 1,
                     .w_hh = 2,
                     .h = 4,
                     .gates = 5,
                     .kept = 4,
                     .dh = 4,
                     .di = 5,
                     .carry = 6,
                     .dw_ih = 1,
                     .dw_hh = 2,
                     .db_ih = 3,
                     .db_hh = 3};
  EXPECT_EQ(flops_of(shapes, grad), inputs + 2 * states + 5 * 96 + 10 * 24);
  grad.dx = 0;
  EXPECT_EQ(flops_of(shapes, grad), 2 * inputs + 2 * states + 5 * 96 + 10 * 24);
  OneOp loss;
  const Id logits = loss.tensor("logits", {3, 2, 7});
  const Id labels = loss.tensor("labels", {2, 3}, Role::activation, Type::i32);
  const Id mean = loss.tensor("loss", {1}, Role::loss);
  loss.operation(
      SoftmaxCrossEntropy{.logits = logits, .labels = labels, .loss = mean, .dlogits = logits});
  EXPECT_EQ(cost(loss.workload).flops, 5 * 42 + 2 * 6);
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
  // time 3, batch 2, from 5 to 4
  const std::vector<Shape> gru{{3, 2, 5}, {12, 5}, {12, 4}, {12}, {3, 2, 4}, {3, 2, 12}};
  EXPECT_EQ(flops_of(gru, Recurrent{.cell = GruCell{},
                                    .x = 0,
                                    .w_ih = 1,
                                    .w_hh = 2,
                                    .b_ih = 3,
                                    .b_hh = 3,
                                    .h = 4,
                                    .gates = 5,
                                    .kept = 4}),
            2 * 6 * 12 * 5 + 2 * 4 * 12 * 4 + 7 * 72 + 5 * 24);
  RecurrentGrad grad{.cell = GruCell{},
                     .x = 0,
                     .w_ih = 1,
                     .w_hh = 2,
                     .h = 4,
                     .gates = 5,
                     .kept = 4,
                     .dh = 4,
                     .di = 5,
                     .dk = 5,
                     .carry = 4,
                     .dx = none,
                     .dw_ih = 1,
                     .dw_hh = 2,
                     .db_ih = 3,
                     .db_hh = 3};
  EXPECT_EQ(flops_of(gru, grad), 2 * 6 * 12 * 5 + 2 * (2 * 4 * 12 * 4) + 6 * 72 + 8 * 24);
  grad.dx = 0;
  EXPECT_EQ(flops_of(gru, grad), 2 * (2 * 6 * 12 * 5) + 2 * (2 * 4 * 12 * 4) + 6 * 72 + 8 * 24);
}

TEST(Cost, CountsWhatIsKeptAndLookedUp) {
  OneOp dropout;
  const Id x = dropout.tensor("x", {6, 7});
  const Id step = dropout.tensor("step", {1}, Role::state, Type::i32);
  dropout.operation(Dropout{.x = x, .y = x, .step = step});
  EXPECT_EQ(cost(dropout.workload).flops, 42);
  OneOp embedding;
  const Id tokens = embedding.tensor("tokens", {2, 3}, Role::activation, Type::i32);
  const Id table = embedding.tensor("table", {9, 4});
  const Id y = embedding.tensor("y", {3, 2, 4});
  embedding.operation(Embedding{.tokens = tokens, .table = table, .y = y});
  EXPECT_EQ(cost(embedding.workload).flops, 0);
  embedding.operation(EmbeddingGrad{.tokens = tokens, .dy = y, .dtable = table});
  EXPECT_EQ(cost(embedding.workload).flops, 24);
}

TEST(Cost, CountsBytesByType) {
  OneOp one;
  const Id x = one.tensor("x", {10, 4}, Role::activation, Type::bf16);
  const Id w = one.tensor("w", {3, 4}, Role::activation, Type::bf16);
  const Id b = one.tensor("b", {3}, Role::parameter);
  one.operation(Linear{.x = x, .w = w, .bias = b, .y = one.tensor("y", {10, 3})});
  EXPECT_EQ(cost(one.workload).bytes, 2 * (40 + 12) + 4 * (3 + 30));

  OneOp cast;
  const Id from = cast.tensor("x", {100});
  cast.operation(Cast{.x = from, .y = cast.tensor("y", {100}, Role::activation, Type::f16)});
  const Cost c = cost(cast.workload);
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
