// SPDX-License-Identifier: Apache-2.0
// Operations on images but convolutions, and what only changes a shape or drops numbers.
#include "cases.h"
#include "crossover/tensor.h"

namespace crossover {
namespace {

using Case = OperationCase;

Case pool_grad(const char* prefix, PoolKind kind, const Shape& x, const Window& window,
               Activation activation, const std::string& name) {
  OneOp one;
  const bool is_max = kind == PoolKind::max;
  const Shape y = result_shape(x, x[1], window);
  PoolGrad op{.kind = kind,
              .where = is_max ? one.tensor("where", y, Role::activation, Type::u8) : none,
              .dy = one.tensor("dy", y),
              .dx = one.tensor("dx", x),
              .window = window,
              .x_activation = activation};
  if (activation != Activation::identity) {
    op.made = is_max ? one.tensor("y", y) : one.tensor("x", x);
  }
  return {prefix + name, one.operation(op).workload};
}

Case max_pool_grad(const Shape& x, const Window& window, Activation activation,
                   const std::string& name) {
  return pool_grad("MaxPoolGrad_", PoolKind::max, x, window, activation, name);
}

Case average_pool_grad(const Shape& x, const Window& window, Activation activation,
                       const std::string& name, bool sums = false) {
  return pool_grad("AveragePoolGrad_", sums ? PoolKind::sum : PoolKind::average, x, window,
                   activation, name);
}

Case average_pool(const Shape& x, const Window& window, const std::string& name,
                  bool sums = false) {
  OneOp one;
  const Id in = one.tensor("x", x);
  const Id y = one.tensor("y", result_shape(x, x[1], window));
  one.operation(
      Pool{.kind = sums ? PoolKind::sum : PoolKind::average, .x = in, .y = y, .window = window});
  return {"AveragePool_" + name, one.workload};
}

Case global_average_pool(const Shape& x, const std::string& name) {
  OneOp one;
  const Id in = one.tensor("x", x);
  const Id y = one.tensor("y", without_places(x));
  one.operation(Pool{.kind = PoolKind::global_average, .x = in, .y = y});
  return {"GlobalAveragePool_" + name, one.workload};
}

Case global_average_pool_grad(const Shape& x, const std::string& name) {
  OneOp one;
  const Id dy = one.tensor("dy", without_places(x));
  const Id dx = one.tensor("dx", x);
  one.operation(PoolGrad{.kind = PoolKind::global_average, .dy = dy, .dx = dx});
  return {"GlobalAveragePoolGrad_" + name, one.workload};
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

/// Of what goes with x: the statistics, and what each channel has.
std::pair<Shape, Shape> beside(NormKind kind, const Shape& x, std::int64_t groups) {
  if (kind == NormKind::layer) {
    return {Shape(x.begin(), x.end() - 1), {x.back()}};
  }
  return {kind == NormKind::batch ? Shape{x[1]} : Shape{x[0], groups}, {x[1]}};
}

}  // namespace

Case max_pool(const Shape& x, const Window& window, const std::string& name,
              const std::string& x_name) {
  OneOp one;
  const Shape y = result_shape(x, x[1], window);
  const Id in = one.tensor(x_name, x);
  const Id where = one.tensor("where", y, Role::activation, Type::u8);
  one.operation(Pool{.x = in, .y = one.tensor("y", y), .where = where, .window = window});
  return {"MaxPool_" + name, one.workload};
}

Case norm(Norm op, const Shape& x, const std::string& name, NormHas has) {
  OneOp one;
  const auto [statistics, channels] = beside(op.kind, x, op.groups);
  op.x = one.tensor("x", x);
  op.scale = has.scale ? one.tensor("scale", channels, Role::parameter) : none;
  op.shift = has.shift ? one.tensor("shift", channels, Role::parameter) : none;
  op.y = one.tensor("y", x);
  op.mean = has.mean ? one.tensor("mean", statistics) : none;
  op.inverse_deviation = one.tensor("inverse deviation", statistics);
  op.addend = has.addend ? one.tensor("addend", x) : none;
  return {std::string(op.name()) + "_" + name, one.operation(op).workload};
}

Case norm_grad(NormGrad op, const Shape& x, const std::string& name, NormHas has) {
  OneOp one;
  const auto [statistics, channels] = beside(op.kind, x, op.groups);
  op.x = one.tensor("x", x);
  op.scale = has.scale ? one.tensor("scale", channels, Role::parameter) : none;
  op.mean = has.mean ? one.tensor("mean", statistics) : none;
  op.inverse_deviation = one.tensor("inverse deviation positive", statistics);
  op.dy = one.tensor("dy", x);
  op.dx = has.dx ? one.tensor("dx", x) : none;
  op.dscale = has.scale ? one.tensor("dscale", channels, Role::gradient) : none;
  op.dshift = has.shift ? one.tensor("dshift", channels, Role::gradient) : none;
  op.y = op.activation != Activation::identity ? one.tensor("y", x) : none;
  op.dy_more = has.more ? one.tensor("dy more", x) : none;
  op.daddend = has.addend ? one.tensor("daddend", x) : none;
  return {std::string(op.name()) + "_" + name, one.operation(op).workload};
}

std::vector<Case> image_cases() {
  constexpr auto identity = Activation::identity;
  constexpr auto relu = Activation::relu;
  constexpr auto sigmoid = Activation::sigmoid;
  const Window one{.size = 1};
  const Window half3{.size = 3, .stride = 2, .padding = 1};
  const Window half3_ceil{.size = 3, .stride = 2, .ceil = true};
  const Window pairs{.size = 2, .stride = 2};
  const Window line3{.size = {1, 3}, .stride = {1, 2}, .padding = {0, 1}, .ceil = true};
  const Window uneven{.size = {3, 2}, .stride = {2, 3}, .padding = {1, 0}, .ceil = true};
  return {
      max_pool({1, 1, 1, 1}, one, "1x1"),
      max_pool({2, 5, 8, 6}, pairs, "pairs"),
      max_pool({2, 16, 8, 8}, half3_ceil, "ceil"),
      max_pool({3, 3, 7, 10}, half3_ceil, "uneven_ceil"),
      max_pool({2, 17, 9, 6}, half3, "padding"),
      max_pool({2, 4, 9, 9}, half3, "equals", "x ties"),
      max_pool({1, 2, 7, 7}, {.size = 2, .stride = 3}, "gaps"),
      max_pool({2, 3, 16, 17}, {.size = 15, .stride = 1, .padding = 7}, "largest"),
      max_pool({2, 17, 1, 20}, line3, "line"),
      max_pool({2, 3, 9, 10}, uneven, "uneven"),
      max_pool({2, 3, 1, 300}, {.size = {1, 255}, .stride = {1, 9}}, "longest"),
      max_pool({8, 16, 33, 31}, half3_ceil, "large"),
      max_pool_grad({1, 1, 1, 1}, one, identity, "1x1"),
      max_pool_grad({2, 5, 8, 6}, pairs, relu, "pairs"),
      max_pool_grad({2, 16, 8, 8}, half3_ceil, identity, "ceil"),
      max_pool_grad({3, 3, 7, 10}, half3_ceil, relu, "uneven_ceil"),
      max_pool_grad({2, 17, 9, 6}, half3, sigmoid, "padding"),
      max_pool_grad({1, 2, 7, 7}, {.size = 2, .stride = 3}, identity, "gaps"),
      max_pool_grad({2, 3, 16, 17}, {.size = 15, .stride = 1, .padding = 7}, relu, "largest"),
      max_pool_grad({2, 17, 1, 20}, line3, relu, "line"),
      max_pool_grad({2, 3, 9, 10}, uneven, identity, "uneven"),
      max_pool_grad({2, 3, 1, 300}, {.size = {1, 255}, .stride = {1, 9}}, identity, "longest"),
      max_pool_grad({8, 16, 33, 31}, half3_ceil, relu, "large"),
      average_pool({1, 1, 1, 1}, one, "1x1"),
      average_pool({2, 5, 8, 6}, pairs, "pairs"),
      average_pool({2, 16, 8, 8}, half3_ceil, "ceil"),
      average_pool({3, 3, 7, 10}, half3_ceil, "uneven_ceil"),
      average_pool({2, 17, 9, 6}, {.size = 4, .stride = 3, .padding = 2, .ceil = true}, "padding"),
      average_pool({1, 2, 7, 7}, {.size = 2, .stride = 3}, "gaps"),
      average_pool({2, 17, 1, 20}, line3, "line"),
      average_pool({2, 3, 9, 10}, uneven, "uneven"),
      average_pool({8, 16, 33, 31}, half3_ceil, "large"),
      average_pool_grad({1, 1, 1, 1}, one, identity, "1x1"),
      average_pool_grad({2, 5, 8, 6}, pairs, identity, "pairs"),
      average_pool_grad({2, 16, 8, 8}, half3_ceil, relu, "ceil"),
      average_pool_grad({3, 3, 7, 10}, half3_ceil, sigmoid, "uneven_ceil"),
      average_pool_grad({2, 17, 9, 6}, {.size = 4, .stride = 3, .padding = 2, .ceil = true},
                        identity, "padding"),
      average_pool_grad({1, 2, 7, 7}, {.size = 2, .stride = 3}, identity, "gaps"),
      average_pool_grad({2, 17, 1, 20}, line3, relu, "line"),
      average_pool_grad({2, 3, 9, 10}, uneven, identity, "uneven"),
      average_pool_grad({8, 16, 33, 31}, half3_ceil, relu, "large"),
      average_pool({2, 17, 8, 6}, pairs, "pairs_sums", true),
      average_pool({2, 3, 7, 10}, half3_ceil, "ceil_sums", true),
      average_pool_grad({2, 17, 8, 6}, pairs, identity, "pairs_sums", true),
      average_pool_grad({2, 3, 7, 10}, half3_ceil, relu, "ceil_sums", true),
      average_pool({2, 17, 3, 8}, {.size = {1, 2}, .stride = {1, 2}}, "line_sums", true),
      average_pool_grad({2, 17, 3, 8}, {.size = {1, 2}, .stride = {1, 2}}, identity, "line_sums",
                        true),
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
      norm({}, {2, 1, 1, 1}, "one_channel"),
      norm({}, {3, 5, 4, 7}, "odd"),
      norm({.activation = relu}, {3, 17, 5, 5}, "relu"),
      norm({.activation = relu}, {2, 16, 6, 3}, "addend", {.addend = true}),
      norm({}, {1, 9, 5, 6}, "one_image", {.addend = true}),
      norm({.activation = relu}, {8, 32, 20, 20}, "large", {.addend = true}),
      norm({.activation = relu}, {4, 3, 64, 65}, "many_pixels", {.addend = true}),
      norm_grad({}, {2, 1, 1, 1}, "one_channel"),
      norm_grad({}, {3, 5, 4, 7}, "odd"),
      norm_grad({.activation = relu}, {3, 17, 5, 5}, "relu"),
      norm_grad({.activation = relu}, {2, 16, 6, 3}, "addend", {.addend = true}),
      norm_grad({.activation = relu}, {2, 9, 5, 6}, "two_gradients",
                {.addend = true, .more = true}),
      norm_grad({}, {1, 9, 5, 6}, "one_image", {.more = true}),
      norm_grad({.activation = relu}, {8, 32, 20, 20}, "large", {.addend = true, .more = true}),
      norm_grad({.activation = relu}, {4, 3, 64, 65}, "many_pixels",
                {.addend = true, .more = true}),
      norm({.kind = NormKind::group, .groups = 3}, {2, 3, 2, 1}, "of_channels"),
      norm({.kind = NormKind::group, .groups = 2}, {3, 10, 4, 7}, "odd"),
      norm({.kind = NormKind::group, .groups = 2}, {2, 48, 5, 3}, "across_blocks"),
      norm({.kind = NormKind::group, .groups = 1}, {2, 32, 9, 9}, "whole"),
      norm({.kind = NormKind::group, .groups = 8}, {4, 32, 40, 40}, "large"),
      norm_grad({.kind = NormKind::group, .groups = 3}, {2, 3, 2, 1}, "of_channels"),
      norm_grad({.kind = NormKind::group, .groups = 2}, {3, 10, 4, 7}, "odd"),
      norm_grad({.kind = NormKind::group, .groups = 2}, {2, 48, 5, 3}, "across_blocks"),
      norm_grad({.kind = NormKind::group, .groups = 1}, {2, 32, 9, 9}, "whole"),
      norm_grad({.kind = NormKind::group, .groups = 8}, {4, 32, 40, 40}, "large"),
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
