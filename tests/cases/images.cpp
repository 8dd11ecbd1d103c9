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

/// Images of shape x to that size; or its gradient.
Case resample(const Shape& x, const Pair& size, bool aligned, bool transposed,
              const std::string& name) {
  OneOp one;
  const Shape result{x[0], x[1], size.down, size.across};
  const Id in = one.tensor("x", transposed ? result : x);
  const Id out = one.tensor("y", transposed ? x : result);
  one.operation(Resample{.x = in, .y = out, .aligned = aligned, .transposed = transposed});
  return {(transposed ? "ResampleGrad_" : "Resample_") + name, one.workload};
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

void add_norms(std::vector<Case>& all, const Norm& op, const Shape& x, const std::string& name,
               NormHas has) {
  const NormGrad grad{.kind = op.kind, .groups = op.groups, .activation = op.activation};
  all.push_back(norm(op, x, name, has));
  all.push_back(norm_grad(grad, x, name, has));
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
  std::vector<Case> all{
      max_pool({2, 4, 9, 9}, half3, "equals", "x ties"),
      norm({}, {1, 9, 5, 6}, "one_image", {.addend = true}),
      norm_grad({}, {1, 9, 5, 6}, "one_image", {.more = true}),
      norm_grad({.activation = relu}, {2, 9, 5, 6}, "two_gradients",
                {.addend = true, .more = true}),
      multiply_grad({7, 3, 5}, {3, 5}, true, false, "of_data"),
      dropout({7, 5}, 0, 1, "of_nothing"),
      reshape({2, 3, 4, 5}, {2, 60}, "flatten"),
      reshape({6, 35}, {2, 3, 5, 7}, "to_images"),
      reshape({33, 65, 41}, {65, 41, 33}, "large"),
  };
  // Forward, and backward behind an activation of what was pooled.
  const auto max = [&](const Shape& x, const Window& window, Activation activation,
                       const std::string& name) {
    all.push_back(max_pool(x, window, name));
    all.push_back(pool_grad("MaxPoolGrad_", PoolKind::max, x, window, activation, name));
  };
  max({1, 1, 1, 1}, one, identity, "1x1");
  max({2, 5, 8, 6}, pairs, relu, "pairs");
  max({2, 16, 8, 8}, half3_ceil, identity, "ceil");
  max({3, 3, 7, 10}, half3_ceil, relu, "uneven_ceil");
  max({2, 17, 9, 6}, half3, sigmoid, "padding");
  max({1, 2, 7, 7}, {.size = 2, .stride = 3}, identity, "gaps");
  max({2, 3, 16, 17}, {.size = 15, .stride = 1, .padding = 7}, relu, "largest");
  max({2, 17, 1, 20}, line3, relu, "line");
  max({2, 3, 9, 10}, uneven, identity, "uneven");
  max({2, 3, 1, 300}, {.size = {1, 255}, .stride = {1, 9}}, identity, "longest");
  max({8, 16, 33, 31}, half3_ceil, relu, "large");
  const auto average = [&](const Shape& x, const Window& window, Activation activation,
                           const std::string& name, bool sums = false) {
    all.push_back(average_pool(x, window, name, sums));
    all.push_back(pool_grad("AveragePoolGrad_", sums ? PoolKind::sum : PoolKind::average, x, window,
                            activation, name));
  };
  average({1, 1, 1, 1}, one, identity, "1x1");
  average({2, 5, 8, 6}, pairs, identity, "pairs");
  average({2, 16, 8, 8}, half3_ceil, relu, "ceil");
  average({3, 3, 7, 10}, half3_ceil, sigmoid, "uneven_ceil");
  average({2, 17, 9, 6}, {.size = 4, .stride = 3, .padding = 2, .ceil = true}, identity, "padding");
  average({1, 2, 7, 7}, {.size = 2, .stride = 3}, identity, "gaps");
  average({2, 17, 1, 20}, line3, relu, "line");
  average({2, 3, 9, 10}, uneven, identity, "uneven");
  average({8, 16, 33, 31}, half3_ceil, relu, "large");
  average({2, 17, 8, 6}, pairs, identity, "pairs_sums", true);
  average({2, 3, 7, 10}, half3_ceil, relu, "ceil_sums", true);
  average({2, 17, 3, 8}, {.size = {1, 2}, .stride = {1, 2}}, identity, "line_sums", true);
  const auto resampled = [&](const Shape& x, const Pair& size, bool aligned,
                             const std::string& name) {
    all.push_back(resample(x, size, aligned, false, name));
    all.push_back(resample(x, size, aligned, true, name));
  };
  resampled({1, 1, 1, 1}, 1, false, "1x1");
  resampled({2, 16, 4, 5}, {8, 10}, false, "twice");
  resampled({2, 5, 4, 5}, {8, 10}, true, "twice_aligned");
  resampled({2, 3, 7, 6}, {10, 4}, false, "more_and_less");
  resampled({2, 17, 9, 8}, {4, 3}, true, "less_aligned");
  resampled({2, 3, 11, 9}, {2, 1}, false, "much_less");
  resampled({2, 5, 1, 1}, {3, 4}, true, "of_a_point");
  resampled({3, 8, 1, 20}, {1, 33}, false, "line");
  resampled({4, 32, 24, 24}, 48, false, "large");
  for (const auto& [x, name] : {std::pair{Shape{1, 1, 1, 1}, "1x1"},
                                {{3, 17, 7, 5}, "odd"},
                                {{8, 64, 16, 16}, "large"},
                                {{7, 3, 5}, "over_time"},
                                {{64, 32, 200}, "over_time_large"}}) {
    all.push_back(global_average_pool(x, name));
    all.push_back(global_average_pool_grad(x, name));
  }
  add_norms(all, {}, {2, 1, 1, 1}, "one_channel");
  add_norms(all, {}, {3, 5, 4, 7}, "odd");
  add_norms(all, {.activation = relu}, {3, 17, 5, 5}, "relu");
  add_norms(all, {.activation = relu}, {2, 16, 6, 3}, "addend", {.addend = true});
  const NormHas most{.addend = true, .more = true};
  add_norms(all, {.activation = relu}, {8, 32, 20, 20}, "large", most);
  add_norms(all, {.activation = relu}, {4, 3, 64, 65}, "many_pixels", most);
  const auto groups = [](std::int64_t count) {
    return Norm{.kind = NormKind::group, .groups = count};
  };
  add_norms(all, groups(3), {2, 3, 2, 1}, "of_channels");
  add_norms(all, groups(2), {3, 10, 4, 7}, "odd");
  add_norms(all, groups(2), {2, 48, 5, 3}, "across_blocks");
  add_norms(all, groups(1), {2, 32, 9, 9}, "whole");
  add_norms(all, groups(8), {4, 32, 40, 40}, "large");
  const auto product = [&](const Shape& whole, const Shape& factor, const std::string& name,
                           bool da = true) {
    all.push_back(multiply(whole, factor, name));
    all.push_back(multiply_grad(whole, factor, da, true, name));
  };
  product({1}, {1}, "one");
  product({7, 5}, {7, 5}, "rows");
  product({3, 17, 7, 5}, {3, 17, 7, 5}, "images");
  product({3, 17, 7, 5}, {3, 17}, "gate");
  product({3, 32, 7, 5}, {3, 32, 1, 1}, "gate_of_images");
  product({7, 3, 5}, {3, 5}, "gate_of_sequences", false);
  product({8, 64, 16, 16}, {8, 64}, "large");
  const auto drop = [&](const Shape& shape, double probability, std::int64_t seed,
                        const std::string& name) {
    all.push_back(dropout(shape, probability, seed, name));
    all.push_back(dropout_grad(shape, probability, seed, name));
  };
  drop({1}, 0.5, 0, "one");
  drop({7, 5}, 0.5, 3, "half");
  drop({3, 5, 4, 7}, 0.25, 1, "of_images");
  drop({257, 513}, 0.5, 2, "large");
  return all;
}

}  // namespace crossover
