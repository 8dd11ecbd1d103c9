// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

#include "crossover/networks.h"
#include "support.h"

namespace crossover::test {

// ---- What check() refuses, and what it says.

namespace {

/// What check() says of the workload, for a precision where that is said.
std::string complaint(const Workload& workload, std::optional<Precision> precision = {}) {
  return message_of<std::invalid_argument>(
      [&] { precision ? check(workload, *precision) : check(workload); });
}

TEST(Check, NamesOperationAndTensor) {
  OneOp one;
  const Id x = one.tensor("x", {2, 3});
  const Id w = one.tensor("w", {5, 4}, Role::parameter);
  one.operation(Linear{.x = x, .w = w, .bias = none, .y = one.tensor("y", {2, 5})});
  EXPECT_EQ(complaint(one.workload), "Linear: 'x' [2, 3] does not fit the weights [5, 4]");
}

TEST(Check, NamesTheFactorThatDoesNotFit) {
  const auto verdict = [](const Shape& a, const Shape& b, const Shape& c) {
    OneOp one;
    const Id left = one.tensor("a", a);
    const Id right = one.tensor("b", b);
    one.operation(Gemm{.a = left, .b = right, .c = one.tensor("c", c), .transpose_b = true});
    return complaint(one.workload);
  };
  EXPECT_EQ(verdict({5, 7}, {3, 7}, {5, 3}), "");
  EXPECT_EQ(verdict({5, 7}, {3, 6}, {5, 3}), "Gemm: 'a' as [5, 7] does not fit 'b' as [6, 3]");
  EXPECT_EQ(verdict({5, 7}, {3, 7}, {3, 5}), "Gemm: tensor 'c' is [3, 5], not [5, 3]");
  EXPECT_EQ(verdict({5, 7, 1}, {3, 7}, {5, 3}), "Gemm: 'a' [5, 7, 1] is not a matrix");
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
    return complaint(one.operation(Cast{.x = x, .y = y}).workload);
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
    return complaint(
        one.operation(Update{.rule = SgdOptions{}, .parameters = {w}, .gradients = {g}}).workload,
        Precision::bf16);
  };
  EXPECT_EQ(sgd(Type::bf16, Type::f32), "Sgd: tensor 'w' is stored as bf16, not f32");
  EXPECT_EQ(sgd(Type::f32, Type::bf16), "");  // as a convolution's gradient is on a GPU
}

}  // namespace

// ---- What the operations on images and sequences say of tensors that do not fit.

namespace {

/// What check() says of an operation whose tensors, numbered from 0, have these shapes and types,
/// behind its name.
std::string complaint(const std::vector<Tensor>& tensors, const Op& op) {
  Workload workload{.tensors = tensors, .steps = {Step{{op}}}, .order = {crossover::Run{}}};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (workload.tensors[i].name.empty()) {
      workload.tensors[i].name = std::string(1, static_cast<char>('a' + i));
    }
  }
  return behind(std::string(name(op)) + ": ", complaint(workload));
}

Tensor of(const Shape& shape, Type type = Type::f32) { return {.shape = shape, .type = type}; }

TEST(CheckConvolution, SaysWhatDoesNotFit) {
  const auto verdict = [](const Shape& x, const Shape& w, const Shape& y, const Window& window) {
    return complaint({of(x), of(w), of(y)}, Convolution{.x = 0, .w = 1, .y = 2, .window = window});
  };
  const Window three{.size = 3};
  const std::string of_a_window =
      "a window needs a size, a stride and a dilation of at least one, and less "
      "padding "
      "than its extent";
  EXPECT_EQ(verdict({2, 4, 5, 6}, {7, 4, 3, 3}, {2, 7, 3, 4}, three), "");
  EXPECT_EQ(verdict({2, 4, 5}, {7, 4, 3, 3}, {2, 7, 3, 4}, three),
            "tensor 'a' [2, 4, 5] is not [batch, channels, height, width]");
  EXPECT_EQ(verdict({2, 4, 5, 6}, {7, 5, 3, 3}, {2, 7, 3, 4}, three),
            "weights 'b' [7, 5, 3, 3] are not [out, 4 or a part of it, 3, 3]");
  EXPECT_EQ(verdict({2, 4, 5, 6}, {7, 4, 3, 2}, {2, 7, 3, 4}, three),
            "weights 'b' [7, 4, 3, 2] are not [out, 4 or a part of it, 3, 3]");
  EXPECT_EQ(verdict({2, 4, 5, 6}, {6, 2, 3, 3}, {2, 6, 3, 4}, three), "");
  EXPECT_EQ(verdict({2, 4, 5, 6}, {7, 2, 3, 3}, {2, 7, 3, 4}, three),
            "2 groups do not divide the 7 channels of the result");
  EXPECT_EQ(verdict({2, 4, 5, 6}, {7, 4, 3, 3}, {2, 7, 4, 3}, three),
            "tensor 'c' is [2, 7, 4, 3], not [2, 7, 3, 4]");
  EXPECT_EQ(verdict({2, 4, 5, 2}, {7, 4, 3, 3}, {2, 7, 3, 4}, three),
            "a window of 3 with padding 0 does not fit into [2, 4, 5, 2]");
  EXPECT_EQ(verdict({2, 4, 5, 6}, {7, 4, 3, 3}, {2, 7, 3, 4}, {.size = 3, .ceil = true}),
            "the window of a convolution has no ceil");
  EXPECT_EQ(verdict({2, 4, 5, 6}, {7, 4, 3, 3}, {2, 7, 3, 4}, {.size = 3, .padding = 3}),
            of_a_window);
  EXPECT_EQ(verdict({2, 4, 5, 6}, {7, 4, 3, 3}, {2, 7, 3, 4}, {.size = 3, .stride = 0}),
            of_a_window);
  const Window flat{.size = {1, 5}, .stride = {1, 2}, .padding = {0, 2}};
  EXPECT_EQ(verdict({2, 4, 1, 6}, {7, 4, 1, 5}, {2, 7, 1, 3}, flat), "");
  EXPECT_EQ(verdict({2, 4, 1, 6}, {7, 4, 5, 1}, {2, 7, 1, 3}, flat),
            "weights 'b' [7, 4, 5, 1] are not [out, 4 or a part of it, 1, 5]");
  EXPECT_EQ(verdict({2, 4, 1, 3}, {7, 4, 1, 8}, {2, 7, 1, 1}, {.size = {1, 8}, .padding = {0, 2}}),
            "a window of 1x8 with padding 0x2 does not fit into [2, 4, 1, 3]");
  EXPECT_EQ(verdict({2, 4, 1, 6}, {7, 4, 1, 5}, {2, 7, 3, 6}, {.size = {1, 5}, .padding = {1, 2}}),
            of_a_window);
  const Tensor x = of({2, 4, 5, 6}, Type::f16);
  const Tensor w = of({7, 4, 3, 3}, Type::f16);
  const Tensor y = of({2, 7, 3, 4}, Type::f16);
  const Convolution biased{.x = 0, .w = 1, .bias = 3, .y = 2, .window = three};
  EXPECT_EQ(complaint({x, w, y, of({7}, Type::f16)}, biased), "");
  EXPECT_EQ(complaint({x, w, y, of({7})}, biased), "tensor 'd' is stored as f32, not f16");
  EXPECT_EQ(complaint({x, of({7, 4, 3, 3}), y, of({7}, Type::f16)}, biased),
            "tensor 'b' is stored as f32, not f16");
}

TEST(CheckConvolution, OfGradientsToo) {
  const ConvolutionGrad op{
      .x = 0, .w = 1, .dy = 2, .dx = 3, .dw = 4, .dbias = 5, .window = {.size = 3}};
  const std::vector<Tensor> fine{of({2, 4, 5, 6}, Type::bf16),
                                 of({7, 4, 3, 3}, Type::bf16),
                                 of({2, 7, 3, 4}, Type::bf16),
                                 of({2, 4, 5, 6}, Type::bf16),
                                 of({7, 4, 3, 3}),
                                 of({7})};
  EXPECT_EQ(complaint(fine, op), "");
  const auto with = [&](std::size_t which, const Tensor& tensor) {
    std::vector<Tensor> tensors = fine;
    tensors[which] = tensor;
    return complaint(tensors, op);
  };
  EXPECT_EQ(with(3, of({2, 4, 6, 5}, Type::bf16)), "tensor 'd' is [2, 4, 6, 5], not [2, 4, 5, 6]");
  EXPECT_EQ(with(4, of({7, 4, 3, 3}, Type::bf16)), "");
  EXPECT_EQ(with(4, of({7, 4, 3, 3}, Type::f16)), "tensor 'e' is stored as f16, not f32 or bf16");
  EXPECT_EQ(with(5, of({4})), "tensor 'f' is [4], not [7]");
}

TEST(CheckConvolution, OfTransposedOnesToo) {
  const Window three{.size = 3};
  const std::vector<Tensor> all{of({2, 4, 5, 6}), of({7, 4, 3, 3}), of({2, 7, 3, 4}), of({4})};
  ConvolutionGrad op{.w = 1, .dy = 2, .dx = 0, .window = three, .bias = 3};
  EXPECT_EQ(complaint(all, op), "");
  op.bias = 1;
  EXPECT_EQ(complaint(all, op), "tensor 'b' is [7, 4, 3, 3], not [4]");
  op = {.x = 0, .w = 1, .dy = 2, .window = three};
  EXPECT_EQ(complaint(all, op), "it has nothing to write");
  op = {.w = 1, .dy = 2, .dw = 1, .window = three};
  EXPECT_EQ(complaint(all, op), "the gradient of weights needs x");
  op = {.x = 0, .w = 1, .dy = 2, .dx = 0, .dbias = 3, .window = three};
  EXPECT_EQ(complaint(all, op), "the gradient of a bias goes with that of weights");
  op = {.x = 0, .w = 1, .dy = 2, .dw = 1, .window = three, .bias = 3};
  EXPECT_EQ(complaint(all, op), "a bias is added to dx, which is missing");
  EXPECT_EQ(complaint(all, ChannelBiasGrad{.dy = 0, .dbias = 3}), "");
  EXPECT_EQ(complaint(all, ChannelBiasGrad{.dy = 2, .dbias = 3}), "tensor 'd' is [4], not [7]");
}

TEST(CheckResample, SaysWhatDoesNotFit) {
  const Tensor x = of({2, 5, 8, 6});
  const Resample aligned{.x = 0, .y = 1, .aligned = true};
  EXPECT_EQ(complaint({x, of({2, 5, 3, 9})}, aligned), "");
  EXPECT_EQ(complaint({of({2, 5, 1, 6}), of({2, 5, 1, 9})}, aligned), "");
  EXPECT_EQ(complaint({x, of({2, 4, 3, 9})}, aligned),
            "tensor 'b' is [2, 4, 3, 9], not [2, 5, 3, 9]");
  EXPECT_EQ(complaint({x, of({2, 5, 1, 9})}, aligned),
            "the corners of one row or column can't be those of several");
}

TEST(CheckPool, SaysWhatDoesNotFit) {
  const Window ceil{.size = 3, .stride = 2, .ceil = true};
  const Pool pool{.x = 0, .y = 1, .where = 2, .window = ceil};
  const Tensor x = of({2, 5, 8, 6});
  const Tensor y = of({2, 5, 4, 3});
  EXPECT_EQ(complaint({x, y, of({2, 5, 4, 3}, Type::u8)}, pool), "");
  EXPECT_EQ(complaint({x, y, of({2, 5, 4, 3}, Type::i32)}, pool),
            "tensor 'c' is stored as i32, not u8");
  EXPECT_EQ(complaint({x, of({2, 5, 3, 2}), of({2, 5, 4, 3}, Type::u8)}, pool),
            "tensor 'b' is [2, 5, 3, 2], not [2, 5, 4, 3]");
  EXPECT_EQ(complaint({of({1, 1, 16, 16}), of({1, 1, 1, 1}), of({1, 1, 1, 1}, Type::u8)},
                      Pool{.x = 0, .y = 1, .where = 2, .window = {.size = 16}}),
            "the window has more than 255 places");
  EXPECT_EQ(
      complaint({x, of({2, 5, 3, 1})}, Pool{.kind = PoolKind::average,
                                            .x = 0,
                                            .y = 1,
                                            .window = {.size = 3, .stride = 2, .dilation = 2}}),
      "the window of a pool has no dilation");
  EXPECT_EQ(
      complaint(
          {of({2, 5, 4, 3}, Type::u8), y, x},
          PoolGrad{.where = 0, .dy = 1, .dx = 2, .window = ceil, .x_activation = Activation::relu}),
      "the derivative of an activation is taken from y, which is missing");
  EXPECT_EQ(complaint({of({2, 5, 4, 3}, Type::u8), y, x},
                      PoolGrad{.where = 0, .dy = 1, .dx = 2, .window = ceil}),
            "");
  EXPECT_EQ(complaint({x, y}, Pool{.kind = PoolKind::average, .x = 0, .y = 1, .window = ceil}), "");
  EXPECT_EQ(complaint({x, of({2, 5, 4, 3}, Type::bf16)},
                      Pool{.kind = PoolKind::average, .x = 0, .y = 1, .window = ceil}),
            "tensor 'b' is stored as bf16, not f32");
  EXPECT_EQ(complaint({y, x}, PoolGrad{.kind = PoolKind::average,
                                       .dy = 0,
                                       .dx = 1,
                                       .window = ceil,
                                       .x_activation = Activation::sigmoid}),
            "the derivative of an activation is taken from x, which is missing");
  EXPECT_EQ(complaint({x, of({5, 2})}, Pool{.kind = PoolKind::global_average, .x = 0, .y = 1}),
            "tensor 'b' is [5, 2], not [2, 5]");
  EXPECT_EQ(complaint({of({2, 5}), of({2, 8})},
                      PoolGrad{.kind = PoolKind::global_average, .dy = 0, .dx = 1}),
            "tensor 'b' [2, 8] is not [batch, channels, height, width]");
  EXPECT_EQ(complaint({of({2, 5}), of({2, 5, 8})},
                      PoolGrad{.kind = PoolKind::global_average, .dy = 0, .dx = 1}),
            "tensor 'a' is [2, 5], not [5, 8]");
  EXPECT_EQ(
      complaint({x, of({2, 5})},
                Pool{.kind = PoolKind::global_average, .x = 0, .y = 1, .window = {.size = 2}}),
      "the mean of all places has no window");
  EXPECT_EQ(complaint({of({2, 5}), x}, PoolGrad{.kind = PoolKind::global_average,
                                                .made = 1,
                                                .dy = 0,
                                                .dx = 1,
                                                .x_activation = Activation::relu}),
            "takes no activation");
}

TEST(CheckBatchNorm, SaysWhatDoesNotFit) {
  const Shape images{2, 3, 4, 5};
  Norm op{.x = 0, .scale = 1, .shift = 1, .y = 2, .mean = 3, .inverse_deviation = 3};
  const Tensor x = of(images, Type::f16);
  EXPECT_EQ(complaint({x, of({3}), x, of({3})}, op), "");
  EXPECT_EQ(complaint({x, of({3}, Type::f16), x, of({3})}, op),
            "tensor 'b' is stored as f16, not f32");
  EXPECT_EQ(complaint({x, of({3}), x, of({4})}, op), "tensor 'd' is [4], not [3]");
  op.addend = 3;
  EXPECT_EQ(complaint({x, of({3}), x, of({3})}, op), "tensor 'd' is [3], not [2, 3, 4, 5]");
  op.addend = none;
  op.activation = Activation::sigmoid;
  EXPECT_EQ(complaint({x, of({3}), x, of({3})}, op), "takes no activation but ReLU");
  NormGrad grad{.x = 0,
                .scale = 1,
                .mean = 1,
                .inverse_deviation = 1,
                .dy = 0,
                .dx = 2,
                .dscale = 3,
                .dshift = 3};
  EXPECT_EQ(complaint({x, of({3}), x, of({3})}, grad), "");
  grad.activation = Activation::relu;
  EXPECT_EQ(complaint({x, of({3}), x, of({3})}, grad),
            "the derivative of an activation is taken from y, which is missing");
  grad.y = 0;
  grad.daddend = 3;
  EXPECT_EQ(complaint({x, of({3}), x, of({3})}, grad), "tensor 'd' is [3], not [2, 3, 4, 5]");
}

TEST(CheckGroupNorm, SaysWhatDoesNotFit) {
  const Tensor x = of({2, 6, 4, 5}, Type::bf16);
  Norm op{.kind = NormKind::group,
          .x = 0,
          .scale = 1,
          .shift = 1,
          .y = 0,
          .mean = 2,
          .inverse_deviation = 2};
  op.groups = 3;
  EXPECT_EQ(complaint({x, of({6}), of({2, 3})}, op), "");
  EXPECT_EQ(complaint({x, of({3}), of({2, 3})}, op), "tensor 'b' is [3], not [6]");
  EXPECT_EQ(complaint({x, of({6}), of({3})}, op), "tensor 'c' is [3], not [2, 3]");
  op.groups = 4;
  EXPECT_EQ(complaint({x, of({6}), of({2, 4})}, op), "4 groups do not divide 6 channels");
}

TEST(CheckDropout, SaysWhatDoesNotFit) {
  const Tensor step = of({1}, Type::i32);
  EXPECT_EQ(complaint({of({3, 4}), step, of({3, 4})}, Dropout{.x = 0, .y = 2, .step = 1}), "");
  EXPECT_EQ(complaint({of({3, 4}), step, of({3, 4})},
                      Dropout{.x = 0, .y = 2, .step = 1, .probability = 1}),
            "drops with a probability in [0, 1)");
  EXPECT_EQ(complaint({of({3, 4}), of({1}), of({3, 4})}, Dropout{.x = 0, .y = 2, .step = 1}),
            "tensor 'b' is stored as f32, not i32");
  EXPECT_EQ(complaint({of({3, 4}), step, of({4, 3})}, DropoutGrad{.dy = 0, .dx = 2, .step = 1}),
            "tensor 'c' is [4, 3], not [3, 4]");
}

TEST(CheckRearrange, SaysWhatDoesNotFit) {
  Rearrange join{.x = {0, 1}, .y = {2}, .blocks = joined({{2, 3}, {2, 4}}, 1)};
  EXPECT_EQ(complaint({of({2, 3}), of({2, 4}), of({2, 7})}, join), "");
  EXPECT_EQ(complaint({of({2, 3}), of({2, 4}), of({2, 6})}, join),
            "a block goes beyond tensor 'c' [2, 6]");
  EXPECT_EQ(complaint({of({2, 3}), of({1, 4}), of({2, 7})}, join),
            "a block goes beyond tensor 'b' [1, 4]");
  EXPECT_EQ(complaint({of({2, 3}), of({2, 4}, Type::bf16), of({2, 7})}, join),
            "tensor 'b' is stored as bf16, not f32");
  const Tensor tokens = of({2, 4}, Type::i32);
  const Rearrange part{.x = {0}, .y = {1}, .blocks = {part_of({2, 4}, 1, 1, 4)}};
  EXPECT_EQ(complaint({tokens, of({2, 3}, Type::i32)}, part), "");
  EXPECT_EQ(complaint({tokens, of({2, 3})}, part), "tensor 'b' is stored as f32, not i32");
  join.blocks.push_back(join.blocks.front());
  EXPECT_EQ(complaint({of({2, 3}), of({2, 4}), of({2, 7})}, join),
            "blocks meet in tensor 'c' [2, 7]");
  join.blocks = {{.from = 2, .extents = {{1, 1, 1}}}};
  EXPECT_EQ(complaint({of({2, 3}), of({2, 4}), of({2, 7})}, join),
            "a block is of no tensor that it has");
  join.x.clear();
  EXPECT_EQ(complaint({of({2, 3}), of({2, 4}), of({2, 7})}, join),
            "it has nothing to read, or nothing to write");
}

TEST(CheckMatmul, SaysWhatDoesNotFit) {
  const Tensor a = of({5, 2, 6});
  Matmul op{.a = 0, .b = 1, .y = 2, .heads = 2, .transpose_b = true};
  EXPECT_EQ(complaint({a, of({4, 2, 6}), of({5, 2, 8})}, op), "");
  EXPECT_EQ(complaint({of({2, 6}), of({4, 2, 6}), of({2, 8})}, op), "");
  EXPECT_EQ(complaint({a, of({4, 2, 6}), of({5, 2, 6})}, op),
            "'a' [5, 2, 6] times 'b' [4, 2, 6] is not 'c' [5, 2, 6]");
  EXPECT_EQ(complaint({a, of({4, 3, 6}), of({5, 2, 8})}, op),
            "'a' [5, 2, 6] times 'b' [4, 3, 6] is not 'c' [5, 2, 8]");
  EXPECT_EQ(complaint({a, of({4, 2, 5}), of({5, 2, 8})}, op),
            "'b' [4, 2, 5] can't be divided into 2 heads");
  EXPECT_EQ(complaint({of({6}), a, a}, op),
            "'a' [6] is neither [time, batch, width] nor [batch, width]");
  EXPECT_EQ(complaint({a, of({4, 2, 6}), of({5, 2, 8}, Type::bf16)}, op),
            "tensor 'c' is stored as bf16, not f32");
}

TEST(CheckSoftmax, SaysWhatDoesNotFit) {
  EXPECT_EQ(complaint({of({5, 6}), of({5, 6})}, Softmax{.x = 0, .y = 1, .heads = 3}), "");
  EXPECT_EQ(complaint({of({5, 6}), of({5, 6})}, Softmax{.x = 0, .y = 1, .heads = 4}),
            "rows of 'a' [5, 6] can't be divided into 4 equal parts");
  EXPECT_EQ(complaint({of({5, 6}), of({5, 6})}, Softmax{.x = 0, .y = 1, .causal = true}),
            "'a' [5, 6] is no sequence, in which later places could be left out");
  EXPECT_EQ(complaint({of({5, 6}), of({5, 6}), of({6, 5})}, SoftmaxGrad{.y = 0, .dy = 1, .dx = 2}),
            "tensor 'c' is [6, 5], not [5, 6]");
}

TEST(CheckMultiply, SaysWhatDoesNotFit) {
  const Multiply product{.a = 0, .b = 1, .y = 0};
  for (const Shape& factor : {Shape{2, 3, 4, 5}, Shape{2, 3}, Shape{2, 3, 1, 1}}) {
    EXPECT_EQ(complaint({of({2, 3, 4, 5}), of(factor)}, product), "");
  }
  EXPECT_EQ(complaint({of({5, 2, 3}), of({2, 3})}, product), "");
  EXPECT_EQ(complaint({of({2, 3, 4, 5}), of({3})}, product),
            "tensor 'b' [3] is neither [2, 3, 4, 5] nor a number for all places of that");
  EXPECT_EQ(complaint({of({2, 3}), of({2, 3}, Type::f16)}, product),
            "tensor 'b' is stored as f16, not f32");
  EXPECT_EQ(complaint({of({2, 3}), of({2, 3})}, MultiplyGrad{.a = 0, .b = 1, .dy = 0}),
            "it has nothing to write");
  EXPECT_EQ(complaint({of({2, 3}), of({2, 3})}, MultiplyGrad{.a = 0, .dy = 0, .da = 1}),
            "it lacks a factor");
}

TEST(CheckReshape, SaysWhatDoesNotFit) {
  EXPECT_EQ(complaint({of({3, 4}), of({2, 6})}, Reshape{.x = 0, .y = 1}), "");
  EXPECT_EQ(complaint({of({3, 4}), of({2, 5})}, Reshape{.x = 0, .y = 1}),
            "'a' [3, 4] and 'b' [2, 5] have different numbers of elements");
  EXPECT_EQ(complaint({of({3, 4}), of({2, 6}, Type::f16)}, Reshape{.x = 0, .y = 1}),
            "tensor 'b' is stored as f16, not f32");
}

TEST(CheckEmbedding, SaysWhatDoesNotFit) {
  const Embedding op{.tokens = 0, .table = 1, .y = 2};
  const Tensor tokens = of({3, 5}, Type::i32);
  EXPECT_EQ(complaint({tokens, of({9, 4}), of({5, 3, 4})}, op), "");
  EXPECT_EQ(complaint({tokens, of({9, 4}), of({3, 5, 4})}, op),
            "tensor 'c' is [3, 5, 4], not [5, 3, 4]");
  EXPECT_EQ(complaint({of({3, 5}), of({9, 4}), of({5, 3, 4})}, op),
            "tensor 'a' is stored as f32, not i32");
  EXPECT_EQ(complaint({of({3}, Type::i32), of({9, 4}), of({5, 3, 4})}, op),
            "tokens 'a' are not [batch, time]");
  EXPECT_EQ(complaint({tokens, of({9}), of({5, 3, 4})}, op),
            "table 'b' is not [vocabulary, width]");
  const EmbeddingGrad grad{.tokens = 0, .dy = 1, .dtable = 2};
  EXPECT_EQ(complaint({tokens, of({5, 3, 4}, Type::bf16), of({9, 4})}, grad), "");
  EXPECT_EQ(complaint({tokens, of({5, 3, 4}, Type::bf16), of({9, 4}, Type::bf16)}, grad),
            "tensor 'c' is stored as bf16, not f32");
}

TEST(CheckTransformer, SaysWhatDoesNotFit) {
  constexpr auto bf16 = Type::bf16;
  const PositionEmbedding position{.x = 0, .table = 1, .y = 2};
  const Tensor sequence = of({5, 3, 4});
  EXPECT_EQ(complaint({sequence, of({5, 4}), sequence}, position), "");
  EXPECT_EQ(complaint({sequence, of({3, 4}), sequence}, position),
            "tensor 'b' is [3, 4], not [5, 4]");
  EXPECT_EQ(complaint({of({5, 4}), of({5, 4}), sequence}, position),
            "tensor 'a' [5, 4] is not [time, batch, width]");
  EXPECT_EQ(complaint({of({5, 3, 4}, bf16), of({5, 4}, bf16)},
                      PositionEmbeddingGrad{.dy = 0, .dtable = 1}),
            "tensor 'b' is stored as bf16, not f32");

  const Norm norm{.kind = NormKind::layer,
                  .x = 0,
                  .scale = 1,
                  .shift = 1,
                  .y = 2,
                  .mean = 3,
                  .inverse_deviation = 3};
  const Tensor rows = of({5, 3, 4}, bf16);
  EXPECT_EQ(complaint({rows, of({4}), rows, of({5, 3})}, norm), "");
  EXPECT_EQ(complaint({rows, of({4}), rows, of({5})}, norm), "tensor 'd' is [5], not [5, 3]");
  EXPECT_EQ(complaint({rows, of({4}, bf16), rows, of({5, 3})}, norm),
            "tensor 'b' is stored as bf16, not f32");
  EXPECT_EQ(complaint({rows, of({4}), rows, of({5, 3})}, Norm{.kind = NormKind::layer,
                                                              .x = 0,
                                                              .scale = 1,
                                                              .shift = 1,
                                                              .y = 2,
                                                              .inverse_deviation = 3}),
            "it has a bias, and no mean or no weight");
  const NormGrad norm_grad{.kind = NormKind::layer,
                           .x = 0,
                           .scale = 1,
                           .mean = 3,
                           .inverse_deviation = 3,
                           .dy = 2,
                           .dscale = 1,
                           .dshift = 1};
  EXPECT_EQ(complaint({rows, of({4}), of({5, 3, 4}), of({5, 3})}, norm_grad),
            "tensor 'c' is stored as f32, not bf16");

  const Attention attention{.qkv = 0, .y = 1, .log_sums = 2, .heads = 2, .causal = false};
  EXPECT_EQ(complaint({of({5, 3, 24}), of({5, 3, 8}), of({3, 2, 5})}, attention), "");
  EXPECT_EQ(complaint({of({5, 3, 8}), of({5, 3, 8}), of({3, 2, 5})}, attention),
            "tensor 'a' [5, 3, 8] is not [time, batch, 3 width]");
  EXPECT_EQ(complaint({of({5, 3, 9}), of({5, 3, 3}), of({3, 2, 5})}, attention),
            "a width of 3 can't be divided into 2 heads");
  EXPECT_EQ(complaint({of({5, 3, 24}), of({5, 3, 8}), of({3, 5})}, attention),
            "tensor 'c' is [3, 5], not [3, 2, 5]");
}

TEST(CheckRecurrent, SaysWhatDoesNotFit) {
  constexpr auto f16 = Type::f16;
  for (const Cell& cell : {Cell{LstmCell{}}, Cell{GruCell{}}}) {
    const Recurrent op{.cell = cell,
                       .x = 0,
                       .w_ih = 1,
                       .w_hh = 2,
                       .b_ih = 3,
                       .b_hh = 3,
                       .h = 4,
                       .gates = 5,
                       .kept = 6};
    const std::int64_t wide = 4 * facts_of(cell).gates;
    const std::string gates = std::to_string(wide);
    const std::vector<Tensor> fine{of({5, 2, 3}, f16), of({wide, 3}, f16), of({wide, 4}, f16),
                                   of({wide}),         of({5, 2, 4}, f16), of({5, 2, wide}, f16),
                                   of({5, 2, 4})};
    EXPECT_EQ(complaint(fine, op), "");
    const auto with = [&](std::size_t which, const Tensor& tensor) {
      std::vector<Tensor> tensors = fine;
      tensors[which] = tensor;
      return complaint(tensors, op);
    };
    EXPECT_EQ(with(0, of({5, 2}, f16)), "'a' [5, 2] is not [time, batch, features]");
    EXPECT_EQ(with(1, of({8, 3}, f16)), "tensor 'b' is [8, 3], not [" + gates + ", 3]");
    EXPECT_EQ(with(2, of({wide}, f16)), "'c' is not a matrix");
    EXPECT_EQ(with(3, of({wide}, f16)), "tensor 'd' is stored as f16, not f32");
    EXPECT_EQ(with(5, of({5, 2, 4}, f16)), "tensor 'f' is [5, 2, 4], not [5, 2, " + gates + "]");
    EXPECT_EQ(with(6, of({5, 2, 4}, f16)), "tensor 'g' is stored as f16, not f32");
  }
}

TEST(CheckRecurrent, SaysWhatDoesNotFitItsGradient) {
  std::vector<Tensor> all{of({5, 2, 3}), of({16, 3}),    of({16, 4}),  of({16}),
                          of({5, 2, 4}), of({5, 2, 16}), of({2, 2, 4})};
  const RecurrentGrad grad{.cell = LstmCell{},
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
  EXPECT_EQ(complaint(all, grad), "");
  all[6] = of({2, 4});
  EXPECT_EQ(complaint(all, grad), "tensor 'g' is [2, 4], not [2, 2, 4]");
}

TEST(CheckLoss, TakesATargetForEachElement) {
  ElementwiseLoss op{.logits = 0, .targets = 1, .loss = 2, .dlogits = 3};
  const auto verdict = [&](const Shape& targets, Type type) {
    return complaint({of({4, 7}), of(targets, type), of({1}), of({4, 7})}, op);
  };
  EXPECT_EQ(verdict({4, 7}, Type::f32), "");
  EXPECT_EQ(verdict({4}, Type::f32), "tensor 'b' is [4], not [4, 7]");
  EXPECT_EQ(verdict({4, 7}, Type::i32), "tensor 'b' is stored as i32, not f32");
  op.function = LossFunction::cross_entropy;
  EXPECT_EQ(verdict({4, 7}, Type::f32), "cross-entropy is another operation");
}

TEST(CheckActivation, MustTellItsDerivativeByItsResult) {
  const LinearGrad op{.x = 0, .w = 1, .dy = 2, .dx = 0, .dw = 1, .x_activation = Activation::silu};
  EXPECT_EQ(complaint({of({4, 5}), of({3, 5}), of({4, 3})}, op),
            "the result of this activation does not tell its derivative");
}

TEST(CheckLoss, TakesRowsAndSequences) {
  const SoftmaxCrossEntropy op{.logits = 0, .labels = 1, .loss = 2, .dlogits = 3};
  const auto verdict = [&](const Shape& logits, const Shape& labels) {
    return complaint({of(logits), of(labels, Type::i32), of({1}), of(logits)}, op);
  };
  EXPECT_EQ(verdict({4, 7}, {4}), "");
  EXPECT_EQ(verdict({3, 4, 7}, {4, 3}), "");
  EXPECT_EQ(verdict({3, 4, 7}, {3, 4}), "tensor 'b' is [3, 4], not [4, 3]");
  EXPECT_EQ(verdict({7}, {4}),
            "the logits are neither [batch, classes] nor [time, batch, "
            "classes]");
}

}  // namespace

}  // namespace crossover::test
