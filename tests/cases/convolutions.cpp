// SPDX-License-Identifier: Apache-2.0
// Convolutions, their gradients, and transposed ones.
#include "cases.h"
#include "crossover/tensor.h"

namespace crossover {
namespace {

using Case = OperationCase;

Case convolution(const Shape& x, std::int64_t out, const Window& window, bool bias,
                 Activation activation, const std::string& name, std::int64_t groups = 1) {
  OneOp one;
  const Id in = one.tensor("x", x);
  const Id w =
      one.tensor("w", {out, x[1] / groups, window.size.down, window.size.across}, Role::parameter);
  const Id b = bias ? one.tensor("bias", {out}, Role::parameter) : none;
  one.operation(Convolution{.x = in,
                            .w = w,
                            .bias = b,
                            .y = one.tensor("y", result_shape(x, out, window)),
                            .window = window,
                            .activation = activation});
  return {"Convolution_" + name, one.workload};
}

Case convolution_grad(const Shape& x, std::int64_t out, const Window& window, bool bias, bool dx,
                      const std::string& name, std::int64_t groups = 1) {
  OneOp one;
  const Shape w{out, x[1] / groups, window.size.down, window.size.across};
  ConvolutionGrad op{.x = one.tensor("x", x),
                     .w = one.tensor("w", w, Role::parameter),
                     .dy = one.tensor("dy", result_shape(x, out, window)),
                     .dx = none,
                     .dw = one.tensor("dw", w, Role::gradient),
                     .dbias = none,
                     .window = window};
  if (bias) {
    op.dbias = one.tensor("dbias", {out}, Role::gradient);
  }
  if (dx) {
    op.dx = one.tensor("dx", x);
  }
  return {"ConvolutionGrad_" + name, one.operation(op).workload};
}

/// A transposed convolution of dy, which comes from images of shape x, or its gradient for weights.
Case transposed(const Shape& x, std::int64_t out, const Window& window, bool bias, bool forward,
                const std::string& name, std::int64_t groups = 1) {
  OneOp one;
  const Shape weights{out, x[1] / groups, window.size.down, window.size.across};
  ConvolutionGrad op{.w = one.tensor("w", weights, Role::parameter),
                     .dy = one.tensor("dy", result_shape(x, out, window)),
                     .window = window};
  if (forward) {
    op.dx = one.tensor("dx", x);
    op.bias = bias ? one.tensor("bias", {x[1]}, Role::parameter) : none;
  } else {
    op.x = one.tensor("x", x);
    op.dw = one.tensor("dw", weights, Role::gradient);
  }
  return {"ConvolutionGrad_transposed_" + name, one.operation(op).workload};
}

Case channel_bias_grad(const Shape& images, const std::string& name) {
  OneOp one;
  const Id dy = one.tensor("dy", images);
  one.operation(ChannelBiasGrad{.dy = dy, .dbias = one.tensor("dbias", {images[1]})});
  return {"ChannelBiasGrad_" + name, one.workload};
}

}  // namespace

Shape result_shape(const Shape& x, std::int64_t channels, const Window& window) {
  return windowed(window, x, channels);
}

std::vector<Case> convolution_cases() {
  constexpr auto identity = Activation::identity;
  constexpr auto relu = Activation::relu;
  constexpr auto sigmoid = Activation::sigmoid;
  const Window one{.size = 1};
  const Window one_of_two{.size = 1, .stride = 2};
  const Window same3{.size = 3, .padding = 1};
  const Window same5{.size = 5, .padding = 2};
  const Window half3{.size = 3, .stride = 2, .padding = 1};
  const Window far3{.size = 3, .padding = 2, .dilation = 2};
  const Window far2{.size = 2, .stride = 2, .padding = 1, .dilation = 3};
  const Window pairs{.size = 2, .stride = 2};
  const Window line5{.size = {1, 5}, .padding = {0, 2}};
  const Window half_line{.size = {1, 4}, .stride = {1, 2}, .padding = {0, 1}};
  const Window far_line{.size = {1, 3}, .padding = {0, 4}, .dilation = {1, 4}};
  const Window pillar{.size = {7, 1}, .padding = {3, 0}};
  const Window uneven{.size = {3, 2}, .stride = {1, 3}, .padding = {2, 1}, .dilation = {2, 1}};
  const Window shifted3{.size = 3, .padding = {1, 0}};
  std::vector<Case> all{
      convolution({2, 16, 7, 9}, 16, same3, true, Activation::silu, "silu"),
      transposed({1, 1, 1, 1}, 1, one, true, true, "1x1"),
      transposed({2, 16, 12, 8}, 32, pairs, true, true, "pairs"),
      transposed({2, 16, 8, 8}, 32, same3, true, true, "of_whole_blocks"),
      transposed({2, 5, 8, 6}, 3, half3, true, true, "output_padding"),
      transposed({2, 6, 7, 5}, 4, half3, false, true, "of_groups", 2),
      transposed({2, 3, 9, 8}, 5, far2, true, true, "dilated_with_stride"),
      transposed({4, 16, 48, 48}, 32, pairs, true, true, "large"),
      transposed({2, 16, 12, 8}, 32, pairs, false, false, "pairs_dw"),
      transposed({2, 16, 8, 8}, 32, same3, false, false, "of_whole_blocks_dw"),
      transposed({2, 6, 7, 5}, 4, half3, false, false, "of_groups_dw", 2),
      transposed({2, 16, 1, 33}, 8, half_line, true, true, "line"),
      transposed({2, 5, 9, 8}, 7, uneven, true, true, "uneven"),
      transposed({2, 16, 1, 33}, 8, half_line, false, false, "line_dw"),
      channel_bias_grad({1, 1, 1, 1}, "1x1"),
      channel_bias_grad({3, 17, 7, 5}, "odd"),
      channel_bias_grad({8, 32, 40, 40}, "large"),
  };
  const auto both = [&](const Shape& x, std::int64_t out, const Window& window, bool bias,
                        Activation activation, const std::string& name, std::int64_t groups = 1,
                        bool dx = true) {
    all.push_back(convolution(x, out, window, bias, activation, name, groups));
    all.push_back(convolution_grad(x, out, window, bias, dx, name, groups));
  };
  both({1, 1, 1, 1}, 1, one, true, identity, "1x1");
  both({2, 5, 4, 7}, 3, one, false, identity, "of_points");
  both({2, 6, 7, 5}, 9, one_of_two, false, identity, "of_every_other_point");
  both({2, 4, 64, 64}, 96, one_of_two, false, identity, "of_every_other_point_of_few");
  both({4, 8, 64, 64}, 16, one_of_two, false, identity, "of_every_other_point_of_8");
  both({3, 3, 9, 8}, 16, same5, true, relu, "first_layer", 1, false);
  both({2, 16, 6, 6}, 32, same3, true, relu, "of_whole_blocks");
  both({2, 17, 7, 9}, 23, same3, true, sigmoid, "odd");
  both({2, 16, 11, 8}, 16, half3, false, identity, "half");
  both({1, 3, 23, 27}, 8, {.size = 7, .stride = 2, .padding = 3}, false, relu, "wide", 1, false);
  both({1, 3, 35, 35}, 5, {.size = 11, .stride = 4, .padding = 2}, true, identity, "wider");
  both({2, 4, 5, 5}, 6, {.size = 5}, true, identity, "whole_image");
  both({2, 1, 3, 3}, 2, {.size = 3, .padding = 2}, true, identity, "mostly_padding");
  both({4, 16, 24, 24}, 32, same3, true, relu, "large");
  both({2, 32, 9, 7}, 32, same3, false, identity, "depthwise", 32);
  both({2, 5, 8, 7}, 5, half3, true, relu, "odd_depthwise", 5);
  both({2, 32, 16, 16}, 32, half3, false, identity, "half_depthwise", 32);
  both({2, 3, 8, 7}, 6, same5, true, identity, "depthwise_to_more", 3, false);
  both({2, 32, 6, 5}, 48, same3, true, relu, "of_groups", 2);
  both({2, 6, 7, 5}, 9, half3, false, sigmoid, "of_odd_groups", 3);
  both({2, 16, 9, 8}, 16, far3, true, relu, "dilated");
  both({2, 3, 9, 8}, 5, far2, false, identity, "dilated_with_stride");
  both({2, 16, 9, 8}, 16, far3, true, identity, "dilated_depthwise", 16);
  both({4, 96, 24, 24}, 96, same3, false, identity, "large_depthwise", 96);
  both({3, 1, 1, 40}, 8, line5, true, relu, "of_a_line", 1, false);
  both({2, 16, 1, 33}, 32, half_line, false, identity, "half_a_line");
  both({2, 16, 1, 64}, 16, far_line, true, Activation::silu, "dilated_line");
  both({2, 16, 1, 30}, 16, line5, true, relu, "depthwise_line", 16);
  both({2, 16, 9, 8}, 16, pillar, true, relu, "pillar");
  both({2, 5, 9, 8}, 7, uneven, true, sigmoid, "uneven");
  both({2, 16, 8, 9}, 16, shifted3, true, relu, "uneven_padding");
  both({16, 32, 1, 500}, 64, line5, true, relu, "large_line");
  return all;
}

}  // namespace crossover
