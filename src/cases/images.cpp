// SPDX-License-Identifier: Apache-2.0
// Operations on images, and what only changes a shape or drops numbers.
#include "cases.h"
#include "crossover/places.h"
#include "crossover/window.h"

namespace crossover {
namespace {

using Case = OperationCase;

Shape result_shape(const Shape& x, std::int64_t channels, const Window& window) {
  return {x[0], channels, positions(window, x[2]), positions(window, x[3])};
}

Case convolution(const Shape& x, std::int64_t out, const Window& window, bool bias,
                 Activation activation, const std::string& name, std::int64_t groups = 1) {
  OneOp one;
  const Id in = one.tensor("x", x);
  const Id w = one.tensor("w", {out, x[1] / groups, window.size, window.size}, Role::parameter);
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
  const Shape w{out, x[1] / groups, window.size, window.size};
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

Case max_pool_grad(const Shape& x, const Window& window, Activation activation,
                   const std::string& name) {
  OneOp one;
  const Shape y = result_shape(x, x[1], window);
  MaxPoolGrad op{.y = none,
                 .where = one.tensor("where", y, Role::activation, Type::u8),
                 .dy = one.tensor("dy", y),
                 .dx = one.tensor("dx", x),
                 .window = window,
                 .x_activation = activation};
  if (activation != Activation::identity) {
    op.y = one.tensor("y", y);
  }
  return {"MaxPoolGrad_" + name, one.operation(op).workload};
}

Case average_pool(const Shape& x, const Window& window, const std::string& name) {
  OneOp one;
  const Id in = one.tensor("x", x);
  const Id y = one.tensor("y", result_shape(x, x[1], window));
  one.operation(AveragePool{.x = in, .y = y, .window = window});
  return {"AveragePool_" + name, one.workload};
}

Case average_pool_grad(const Shape& x, const Window& window, Activation activation,
                       const std::string& name) {
  OneOp one;
  AveragePoolGrad op{.x = none,
                     .dy = one.tensor("dy", result_shape(x, x[1], window)),
                     .dx = one.tensor("dx", x),
                     .window = window,
                     .x_activation = activation};
  if (activation != Activation::identity) {
    op.x = one.tensor("x", x);
  }
  return {"AveragePoolGrad_" + name, one.operation(op).workload};
}

Case global_average_pool(const Shape& x, const std::string& name) {
  OneOp one;
  const Id in = one.tensor("x", x);
  one.operation(GlobalAveragePool{.x = in, .y = one.tensor("y", without_places(x))});
  return {"GlobalAveragePool_" + name, one.workload};
}

Case global_average_pool_grad(const Shape& x, const std::string& name) {
  OneOp one;
  const Id dy = one.tensor("dy", without_places(x));
  one.operation(GlobalAveragePoolGrad{.dy = dy, .dx = one.tensor("dx", x)});
  return {"GlobalAveragePoolGrad_" + name, one.workload};
}

Case batch_norm(const Shape& x, bool addend, Activation activation, const std::string& name) {
  OneOp one;
  const Shape channels{x[1]};
  BatchNorm op{.x = one.tensor("x", x),
               .scale = one.tensor("scale", channels, Role::parameter),
               .shift = one.tensor("shift", channels, Role::parameter),
               .addend = none,
               .y = one.tensor("y", x),
               .mean = one.tensor("mean", channels),
               .inverse_deviation = one.tensor("inverse deviation", channels),
               .activation = activation};
  if (addend) {
    op.addend = one.tensor("addend", x);
  }
  return {"BatchNorm_" + name, one.operation(op).workload};
}

Case batch_norm_grad(const Shape& x, bool more, bool addend, Activation activation,
                     const std::string& name) {
  OneOp one;
  const Shape channels{x[1]};
  BatchNormGrad op{.x = one.tensor("x", x),
                   .scale = one.tensor("scale", channels, Role::parameter),
                   .mean = one.tensor("mean", channels),
                   .inverse_deviation = one.tensor("inverse deviation positive", channels),
                   .y = none,
                   .dy = one.tensor("dy", x),
                   .dy_more = none,
                   .dx = one.tensor("dx", x),
                   .dscale = one.tensor("dscale", channels, Role::gradient),
                   .dshift = one.tensor("dshift", channels, Role::gradient),
                   .daddend = none,
                   .activation = activation};
  if (activation != Activation::identity) {
    op.y = one.tensor("y", x);
  }
  if (more) {
    op.dy_more = one.tensor("dy more", x);
  }
  if (addend) {
    op.daddend = one.tensor("daddend", x);
  }
  return {"BatchNormGrad_" + name, one.operation(op).workload};
}

/// By a factor of that shape.
Case multiply(const Shape& whole, const Shape& factor, const std::string& name) {
  OneOp one;
  const Id a = one.tensor("a", whole);
  const Id b = one.tensor("b", factor);
  one.operation(Multiply{.a = a, .b = b, .y = one.tensor("y", whole)});
  return {"Multiply_" + name, one.workload};
}

Case multiply_grad(const Shape& whole, const Shape& factor, bool da, bool db,
                   const std::string& name) {
  OneOp one;
  MultiplyGrad op{.dy = one.tensor("dy", whole)};
  if (da) {
    op.b = one.tensor("b", factor);
    op.da = one.tensor("da", whole);
  }
  if (db) {
    op.a = one.tensor("a", whole);
    op.db = one.tensor("db", factor);
  }
  return {"MultiplyGrad_" + name, one.operation(op).workload};
}

Case dropout(const Shape& shape, double probability, std::int64_t seed, const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x", shape);
  const Id step = one.tensor("step", {1}, Role::state, Type::i32);
  one.operation(Dropout{
      .x = x, .y = one.tensor("y", shape), .step = step, .probability = probability, .seed = seed});
  return {"Dropout_" + name, one.workload, 50};
}

Case dropout_grad(const Shape& shape, double probability, std::int64_t seed,
                  const std::string& name) {
  OneOp one;
  const Id dy = one.tensor("dy", shape);
  const Id step = one.tensor("step", {1}, Role::state, Type::i32);
  one.operation(DropoutGrad{.dy = dy,
                            .dx = one.tensor("dx", shape),
                            .step = step,
                            .probability = probability,
                            .seed = seed});
  return {"DropoutGrad_" + name, one.workload, 50};
}

Case reshape(const Shape& from, const Shape& to, const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x", from);
  one.operation(Reshape{.x = x, .y = one.tensor("y", to)});
  return {"Reshape_" + name, one.workload};
}

}  // namespace

Case max_pool(const Shape& x, const Window& window, const std::string& name,
              const std::string& x_name) {
  OneOp one;
  const Shape y = result_shape(x, x[1], window);
  const Id in = one.tensor(x_name, x);
  const Id where = one.tensor("where", y, Role::activation, Type::u8);
  one.operation(MaxPool{.x = in, .y = one.tensor("y", y), .where = where, .window = window});
  return {"MaxPool_" + name, one.workload};
}

std::vector<Case> image_cases() {
  constexpr auto identity = Activation::identity;
  constexpr auto relu = Activation::relu;
  constexpr auto sigmoid = Activation::sigmoid;
  const Window one{.size = 1};
  const Window one_of_two{.size = 1, .stride = 2};
  const Window same3{.size = 3, .padding = 1};
  const Window same5{.size = 5, .padding = 2};
  const Window half3{.size = 3, .stride = 2, .padding = 1};
  const Window half3_ceil{.size = 3, .stride = 2, .ceil = true};
  const Window far3{.size = 3, .padding = 2, .dilation = 2};
  const Window far2{.size = 2, .stride = 2, .padding = 1, .dilation = 3};
  const Window pairs{.size = 2, .stride = 2};
  return {
      convolution({1, 1, 1, 1}, 1, one, true, identity, "1x1"),
      convolution({2, 5, 4, 7}, 3, one, false, identity, "of_points"),
      convolution({2, 6, 7, 5}, 9, one_of_two, false, identity, "of_every_other_point"),
      convolution({3, 3, 9, 8}, 16, same5, true, relu, "first_layer"),
      convolution({2, 16, 6, 6}, 32, same3, true, relu, "of_whole_blocks"),
      convolution({2, 17, 7, 9}, 23, same3, true, sigmoid, "odd"),
      convolution({2, 16, 7, 9}, 16, same3, true, Activation::silu, "silu"),
      convolution({2, 16, 11, 8}, 16, half3, false, identity, "half"),
      convolution({1, 3, 23, 27}, 8, {.size = 7, .stride = 2, .padding = 3}, false, relu, "wide"),
      convolution({1, 3, 35, 35}, 5, {.size = 11, .stride = 4, .padding = 2}, true, identity,
                  "wider"),
      convolution({2, 4, 5, 5}, 6, {.size = 5}, true, identity, "whole_image"),
      convolution({2, 1, 3, 3}, 2, {.size = 3, .padding = 2}, true, identity, "mostly_padding"),
      convolution({4, 16, 24, 24}, 32, same3, true, relu, "large"),
      convolution({2, 32, 9, 7}, 32, same3, false, identity, "depthwise", 32),
      convolution({2, 5, 8, 7}, 5, half3, true, relu, "odd_depthwise", 5),
      convolution({2, 3, 8, 7}, 6, same5, true, identity, "depthwise_to_more", 3),
      convolution({2, 32, 6, 5}, 48, same3, true, relu, "of_groups", 2),
      convolution({2, 6, 7, 5}, 9, half3, false, sigmoid, "of_odd_groups", 3),
      convolution({2, 16, 9, 8}, 16, far3, true, relu, "dilated"),
      convolution({2, 3, 9, 8}, 5, far2, false, identity, "dilated_with_stride"),
      convolution({2, 16, 9, 8}, 16, far3, true, identity, "dilated_depthwise", 16),
      convolution({4, 96, 24, 24}, 96, same3, false, identity, "large_depthwise", 96),
      convolution_grad({1, 1, 1, 1}, 1, one, true, true, "1x1"),
      convolution_grad({2, 5, 4, 7}, 3, one, false, true, "of_points"),
      convolution_grad({2, 6, 7, 5}, 9, one_of_two, false, true, "of_every_other_point"),
      convolution_grad({3, 3, 9, 8}, 16, same5, true, false, "first_layer"),
      convolution_grad({2, 16, 6, 6}, 32, same3, true, true, "of_whole_blocks"),
      convolution_grad({2, 17, 7, 9}, 23, same3, true, true, "odd"),
      convolution_grad({2, 16, 11, 8}, 16, half3, false, true, "half"),
      convolution_grad({1, 3, 23, 27}, 8, {.size = 7, .stride = 2, .padding = 3}, false, false,
                       "wide"),
      convolution_grad({1, 3, 35, 35}, 5, {.size = 11, .stride = 4, .padding = 2}, true, true,
                       "wider"),
      convolution_grad({2, 4, 5, 5}, 6, {.size = 5}, true, true, "whole_image"),
      convolution_grad({2, 1, 3, 3}, 2, {.size = 3, .padding = 2}, true, true, "mostly_padding"),
      convolution_grad({4, 16, 24, 24}, 32, same3, true, true, "large"),
      convolution_grad({2, 32, 9, 7}, 32, same3, false, true, "depthwise", 32),
      convolution_grad({2, 5, 8, 7}, 5, half3, true, true, "odd_depthwise", 5),
      convolution_grad({2, 3, 8, 7}, 6, same5, true, false, "depthwise_to_more", 3),
      convolution_grad({2, 32, 6, 5}, 48, same3, true, true, "of_groups", 2),
      convolution_grad({2, 6, 7, 5}, 9, half3, false, true, "of_odd_groups", 3),
      convolution_grad({2, 16, 9, 8}, 16, far3, true, true, "dilated"),
      convolution_grad({2, 3, 9, 8}, 5, far2, false, true, "dilated_with_stride"),
      convolution_grad({2, 16, 9, 8}, 16, far3, true, true, "dilated_depthwise", 16),
      convolution_grad({4, 96, 24, 24}, 96, same3, false, true, "large_depthwise", 96),
      max_pool({1, 1, 1, 1}, one, "1x1"),
      max_pool({2, 5, 8, 6}, pairs, "pairs"),
      max_pool({2, 16, 8, 8}, half3_ceil, "ceil"),
      max_pool({3, 3, 7, 10}, half3_ceil, "uneven_ceil"),
      max_pool({2, 17, 9, 6}, half3, "padding"),
      max_pool({2, 4, 9, 9}, half3, "equals", "x ties"),
      max_pool({1, 2, 7, 7}, {.size = 2, .stride = 3}, "gaps"),
      max_pool({2, 3, 16, 17}, {.size = 15, .stride = 1, .padding = 7}, "largest"),
      max_pool({8, 16, 33, 31}, half3_ceil, "large"),
      max_pool_grad({1, 1, 1, 1}, one, identity, "1x1"),
      max_pool_grad({2, 5, 8, 6}, pairs, relu, "pairs"),
      max_pool_grad({2, 16, 8, 8}, half3_ceil, identity, "ceil"),
      max_pool_grad({3, 3, 7, 10}, half3_ceil, relu, "uneven_ceil"),
      max_pool_grad({2, 17, 9, 6}, half3, sigmoid, "padding"),
      max_pool_grad({1, 2, 7, 7}, {.size = 2, .stride = 3}, identity, "gaps"),
      max_pool_grad({2, 3, 16, 17}, {.size = 15, .stride = 1, .padding = 7}, relu, "largest"),
      max_pool_grad({8, 16, 33, 31}, half3_ceil, relu, "large"),
      average_pool({1, 1, 1, 1}, one, "1x1"),
      average_pool({2, 5, 8, 6}, pairs, "pairs"),
      average_pool({2, 16, 8, 8}, half3_ceil, "ceil"),
      average_pool({3, 3, 7, 10}, half3_ceil, "uneven_ceil"),
      average_pool({2, 17, 9, 6}, {.size = 4, .stride = 3, .padding = 2, .ceil = true}, "padding"),
      average_pool({1, 2, 7, 7}, {.size = 2, .stride = 3}, "gaps"),
      average_pool({8, 16, 33, 31}, half3_ceil, "large"),
      average_pool_grad({1, 1, 1, 1}, one, identity, "1x1"),
      average_pool_grad({2, 5, 8, 6}, pairs, identity, "pairs"),
      average_pool_grad({2, 16, 8, 8}, half3_ceil, relu, "ceil"),
      average_pool_grad({3, 3, 7, 10}, half3_ceil, sigmoid, "uneven_ceil"),
      average_pool_grad({2, 17, 9, 6}, {.size = 4, .stride = 3, .padding = 2, .ceil = true},
                        identity, "padding"),
      average_pool_grad({1, 2, 7, 7}, {.size = 2, .stride = 3}, identity, "gaps"),
      average_pool_grad({8, 16, 33, 31}, half3_ceil, relu, "large"),
      global_average_pool({1, 1, 1, 1}, "1x1"),
      global_average_pool({3, 17, 7, 5}, "odd"),
      global_average_pool({8, 64, 16, 16}, "large"),
      global_average_pool({7, 3, 5}, "over_time"),
      global_average_pool({64, 32, 200}, "over_time_large"),
      global_average_pool_grad({1, 1, 1, 1}, "1x1"),
      global_average_pool_grad({3, 17, 7, 5}, "odd"),
      global_average_pool_grad({8, 64, 16, 16}, "large"),
      global_average_pool_grad({7, 3, 5}, "over_time"),
      global_average_pool_grad({64, 32, 200}, "over_time_large"),
      batch_norm({2, 1, 1, 1}, false, identity, "one_channel"),
      batch_norm({3, 5, 4, 7}, false, identity, "odd"),
      batch_norm({3, 17, 5, 5}, false, relu, "relu"),
      batch_norm({2, 16, 6, 3}, true, relu, "addend"),
      batch_norm({1, 9, 5, 6}, true, identity, "one_image"),
      batch_norm({8, 32, 20, 20}, true, relu, "large"),
      batch_norm({4, 3, 64, 65}, true, relu, "many_pixels"),
      batch_norm_grad({2, 1, 1, 1}, false, false, identity, "one_channel"),
      batch_norm_grad({3, 5, 4, 7}, false, false, identity, "odd"),
      batch_norm_grad({3, 17, 5, 5}, false, false, relu, "relu"),
      batch_norm_grad({2, 16, 6, 3}, false, true, relu, "addend"),
      batch_norm_grad({2, 9, 5, 6}, true, true, relu, "two_gradients"),
      batch_norm_grad({1, 9, 5, 6}, true, false, identity, "one_image"),
      batch_norm_grad({8, 32, 20, 20}, true, true, relu, "large"),
      batch_norm_grad({4, 3, 64, 65}, true, true, relu, "many_pixels"),
      multiply({1}, {1}, "one"),
      multiply({7, 5}, {7, 5}, "rows"),
      multiply({3, 17, 7, 5}, {3, 17, 7, 5}, "images"),
      multiply({3, 17, 7, 5}, {3, 17}, "gate"),
      multiply({3, 32, 7, 5}, {3, 32, 1, 1}, "gate_of_images"),
      multiply({7, 3, 5}, {3, 5}, "gate_of_sequences"),
      multiply({8, 64, 16, 16}, {8, 64}, "large"),
      multiply_grad({1}, {1}, true, true, "one"),
      multiply_grad({7, 5}, {7, 5}, true, true, "rows"),
      multiply_grad({3, 17, 7, 5}, {3, 17, 7, 5}, true, true, "images"),
      multiply_grad({3, 17, 7, 5}, {3, 17}, true, true, "gate"),
      multiply_grad({3, 32, 7, 5}, {3, 32, 1, 1}, true, true, "gate_of_images"),
      multiply_grad({7, 3, 5}, {3, 5}, false, true, "gate_of_sequences"),
      multiply_grad({7, 3, 5}, {3, 5}, true, false, "of_data"),
      multiply_grad({8, 64, 16, 16}, {8, 64}, true, true, "large"),
      dropout({1}, 0.5, 0, "one"),
      dropout({7, 5}, 0.5, 3, "half"),
      dropout({3, 5, 4, 7}, 0.25, 1, "of_images"),
      dropout({7, 5}, 0, 1, "of_nothing"),
      dropout({257, 513}, 0.5, 2, "large"),
      dropout_grad({1}, 0.5, 0, "one"),
      dropout_grad({7, 5}, 0.5, 3, "half"),
      dropout_grad({3, 5, 4, 7}, 0.25, 1, "of_images"),
      dropout_grad({257, 513}, 0.5, 2, "large"),
      reshape({2, 3, 4, 5}, {2, 60}, "flatten"),
      reshape({6, 35}, {2, 3, 5, 7}, "to_images"),
      reshape({33, 65, 41}, {65, 41, 33}, "large"),
  };
}

}  // namespace crossover
