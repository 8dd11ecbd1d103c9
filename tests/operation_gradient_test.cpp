// SPDX-License-Identifier: Apache-2.0
// The reference's gradients of single operations against finite differences of what they are
// gradients of.
#include <gtest/gtest.h>

#include <numeric>
#include <tuple>
#include <variant>

#include "cases/operation_cases.h"
#include "support.h"

namespace crossover::test {
namespace {

/// A step that computes some results, then gradients from what `results` name: the gradients are
/// those of the sum of each result times each of the tensors that go with it.
struct OperationGradientCase {
  OperationCase step;
  std::vector<std::pair<Id, std::vector<Id>>> results;
  std::vector<std::pair<Id, Id>> gradients;  ///< a tensor, and its gradient

  friend std::ostream& operator<<(std::ostream& out, const OperationGradientCase& c) {
    return out << c.step.name;
  }
};

/// Tensors for the operations that follow each other in a step.
struct Builder : OneOp {
  std::vector<std::pair<Id, std::vector<Id>>> results;
  std::vector<std::pair<Id, Id>> gradients;

  Id f32(const std::string& name, const Shape& shape) { return tensor(name, shape); }
  Id i32(const std::string& name, const Shape& shape) {
    return tensor(name, shape, Role::activation, Type::i32);
  }
  /// With the gradient that the step computes.
  std::pair<Id, Id> input(const std::string& name, const Shape& shape) {
    return gradients.emplace_back(f32(name, shape), f32("d" + name, shape));
  }
  /// With the gradient that the step reads.
  std::pair<Id, Id> result(const std::string& name, const Shape& shape) {
    const std::pair both{f32(name, shape), f32("d" + name, shape)};
    results.push_back({both.first, {both.second}});
    return both;
  }
  OperationGradientCase step(const std::string& name, std::vector<Op> ops,
                             std::int64_t classes = 2) {
    workload.steps = {Step{std::move(ops)}};
    workload.order = {crossover::Run{}};
    return {{name, workload, classes}, results, gradients};
  }
};

OperationGradientCase convolution(const Shape& shape, std::int64_t out, const Window& window,
                                  const std::string& name, std::int64_t groups = 1) {
  Builder t;
  const auto [x, dx] = t.input("x", shape);
  const auto [w, dw] = t.input("w", {out, shape[1] / groups, window.size.down, window.size.across});
  const auto [bias, dbias] = t.input("bias", {out});
  const auto [y, dy] = t.result("y", windowed(window, shape, out));
  return t.step(
      "Convolution_" + name,
      {Convolution{.x = x, .w = w, .bias = bias, .y = y, .window = window},
       ConvolutionGrad{
           .x = x, .w = w, .dy = dy, .dx = dx, .dw = dw, .dbias = dbias, .window = window}});
}

/// As TransposedConvolutionLayer has it, of images that become those of shape `result`.
OperationGradientCase transposed(const Shape& result, std::int64_t in, const Window& window,
                                 const std::string& name, std::int64_t groups = 1) {
  Builder t;
  const auto [x, dx] = t.input("x", windowed(window, result, in));
  const auto [w, dw] = t.input("w", {in, result[1] / groups, window.size.down, window.size.across});
  const auto [bias, dbias] = t.input("bias", {result[1]});
  const auto [y, dy] = t.result("y", result);
  return t.step("TransposedConvolution_" + name,
                {ConvolutionGrad{.w = w, .dy = x, .dx = y, .window = window, .bias = bias},
                 Convolution{.x = dy, .w = w, .y = dx, .window = window},
                 ConvolutionGrad{.x = dy, .w = w, .dy = x, .dw = dw, .window = window},
                 ChannelBiasGrad{.dy = dy, .dbias = dbias}});
}

/// As UpsampleLayer has it.
OperationGradientCase upsample(const Shape& result, const Pair& factor) {
  Builder t;
  const Window window{.size = factor, .stride = factor};
  const auto [x, dx] = t.input("x", windowed(window, result, result[1]));
  const auto [y, dy] = t.result("y", result);
  return t.step("Upsample_" + to_string(factor),
                {PoolGrad{.kind = PoolKind::sum, .dy = x, .dx = y, .window = window},
                 Pool{.kind = PoolKind::sum, .x = dy, .y = dx, .window = window}});
}

/// As InterpolateLayer has it.
OperationGradientCase interpolated(const Shape& shape, const Pair& size, bool aligned) {
  Builder t;
  const auto [x, dx] = t.input("x", shape);
  const auto [y, dy] = t.result("y", {shape[0], shape[1], size.down, size.across});
  return t.step("Interpolate_" + to_string(size) + (aligned ? "_aligned" : ""),
                {Resample{.x = x, .y = y, .aligned = aligned},
                 Resample{.x = dy, .y = dx, .aligned = aligned, .transposed = true}});
}

/// The largest or the mean of what an activation made.
OperationGradientCase pool(PoolKind kind, const Shape& shape, const Window& window,
                           Activation activation, const std::string& name) {
  Builder t;
  const bool is_max = kind == PoolKind::max;
  const Shape pooled = windowed(window, shape, shape[1]);
  const auto [z, dz] = t.input("z", shape);
  const Id x = t.f32("x", shape);
  const auto [y, dy] = t.result("y", pooled);
  const Id where = is_max ? t.tensor("where", pooled, Role::activation, Type::u8) : none;
  return t.step((is_max ? "MaxPool_" : "AveragePool_") + name,
                {Activate{.x = z, .y = x, .activation = activation},
                 Pool{.kind = kind, .x = x, .y = y, .where = where, .window = window},
                 PoolGrad{.kind = kind,
                          .made = is_max ? y : x,
                          .where = where,
                          .dy = dy,
                          .dx = dz,
                          .window = window,
                          .x_activation = activation}});
}

OperationGradientCase max_pool(const Shape& shape, const Window& window, Activation activation,
                               const std::string& name) {
  return pool(PoolKind::max, shape, window, activation, name);
}

OperationGradientCase average_pool(const Shape& shape, const Window& window, Activation activation,
                                   const std::string& name) {
  return pool(PoolKind::average, shape, window, activation, name);
}

OperationGradientCase global_average_pool(const Shape& shape, const std::string& name) {
  Builder t;
  const auto [x, dx] = t.input("x", shape);
  const auto [y, dy] = t.result("y", without_places(shape));
  return t.step("GlobalAveragePool" + name,
                {Pool{.kind = PoolKind::global_average, .x = x, .y = y},
                 PoolGrad{.kind = PoolKind::global_average, .dy = dy, .dx = dx}});
}

OperationGradientCase rearrange(const std::vector<Shape>& parts, std::size_t axis,
                                const std::string& name) {
  Builder t;
  std::vector<Id> x;
  std::vector<Id> dx;
  Shape whole = parts.front();
  whole[axis] = 0;
  for (const Shape& part : parts) {
    const auto [one, gradient] = t.input("x" + std::to_string(x.size()), part);
    x.push_back(one);
    dx.push_back(gradient);
    whole[axis] += part[axis];
  }
  const auto [y, dy] = t.result("y", whole);
  const std::vector<CopiedBlock> blocks = joined(parts, axis);
  return t.step("Rearrange_" + name, {Rearrange{.x = x, .y = {y}, .blocks = blocks},
                                      Rearrange{.x = {dy}, .y = dx, .blocks = reversed(blocks)}});
}

OperationGradientCase to_sequence(const Shape& image) {
  Builder t;
  const auto [x, dx] = t.input("x", image);
  const auto [y, dy] = t.result("y", {image[2] * image[3], image[0], image[1]});
  return t.step("Rearrange_to_sequence",
                {Rearrange{.x = {x}, .y = {y}, .blocks = as_sequence(image)},
                 Rearrange{.x = {dy}, .y = {dx}, .blocks = reversed(as_sequence(image))}});
}

OperationGradientCase multiply(const Shape& whole, const Shape& factor, const std::string& name) {
  Builder t;
  const auto [a, da] = t.input("a", whole);
  const auto [b, db] = t.input("b", factor);
  const auto [y, dy] = t.result("y", whole);
  return t.step("Multiply_" + name, {Multiply{.a = a, .b = b, .y = y},
                                     MultiplyGrad{.a = a, .b = b, .dy = dy, .da = da, .db = db}});
}

/// What a normalization has: all but what only that of a batch takes, and a layer's may lack.
struct NormHas {
  bool addend = false, more = false;
  bool mean = true, scale = true, shift = true;
};

/// `op`: its kind, groups and activation.
OperationGradientCase norm(Norm op, const Shape& shape, const std::string& name, NormHas has = {}) {
  Builder t;
  const Shape channels{op.kind == NormKind::layer ? shape.back() : shape[1]};
  const Shape statistics = op.kind == NormKind::batch   ? channels
                           : op.kind == NormKind::group ? Shape{shape[0], op.groups}
                                                        : Shape(shape.begin(), shape.end() - 1);
  const auto input = [&t](bool is_there, const char* of, const Shape& as) {
    return is_there ? t.input(of, as) : std::pair{none, none};
  };
  NormGrad grad{.kind = op.kind, .groups = op.groups, .activation = op.activation};
  std::tie(op.x, grad.dx) = t.input("x", shape);
  std::tie(op.scale, grad.dscale) = input(has.scale, "scale", channels);
  std::tie(op.shift, grad.dshift) = input(has.shift, "shift", channels);
  std::tie(op.addend, grad.daddend) = input(has.addend, "addend", shape);
  std::tie(op.y, grad.dy) = t.result("y", shape);
  op.mean = has.mean ? t.f32("mean", statistics) : none;
  op.inverse_deviation = t.f32("inverse deviation", statistics);
  op.epsilon = 0.01;
  grad.x = op.x;
  grad.scale = op.scale;
  grad.mean = op.mean;
  grad.inverse_deviation = op.inverse_deviation;
  grad.y = op.activation == Activation::identity ? none : op.y;
  if (has.more) {
    grad.dy_more = t.f32("dy more", shape);
    t.results[0].second.push_back(grad.dy_more);
  }
  return t.step(std::string(op.name()) + "_" + name, {op, grad});
}

OperationGradientCase dropout(double probability, const std::string& name) {
  Builder t;
  const auto [x, dx] = t.input("x", {7, 5});
  const auto [y, dy] = t.result("y", {7, 5});
  const Id step = t.i32("step", {1});
  return t.step(
      "Dropout_" + name,
      {Dropout{.x = x, .y = y, .step = step, .probability = probability, .seed = 4},
       DropoutGrad{.dy = dy, .dx = dx, .step = step, .probability = probability, .seed = 4}});
}

OperationGradientCase embedding(std::int64_t time, std::int64_t batch, std::int64_t vocabulary,
                                const std::string& name) {
  Builder t;
  const std::int64_t width = 3;
  const Id tokens = t.i32("tokens", {batch, time});
  const auto [table, dtable] = t.input("table", {vocabulary, width});
  const auto [y, dy] = t.result("y", {time, batch, width});
  return t.step("Embedding_" + name,
                {Embedding{.tokens = tokens, .table = table, .y = y},
                 EmbeddingGrad{.tokens = tokens, .dy = dy, .dtable = dtable}},
                vocabulary);
}

OperationGradientCase position_embedding(std::int64_t time, std::int64_t batch) {
  Builder t;
  const std::int64_t width = 3;
  const Id x = t.f32("x", {time, batch, width});
  const auto [table, dtable] = t.input("table", {time, width});
  const auto [y, dy] = t.result("y", {time, batch, width});
  return t.step("PositionEmbedding", {PositionEmbedding{.x = x, .table = table, .y = y},
                                      PositionEmbeddingGrad{.dy = dy, .dtable = dtable}});
}

OperationGradientCase attention(std::int64_t time, std::int64_t batch, std::int64_t heads,
                                std::int64_t d, bool causal, const std::string& name) {
  Builder t;
  const auto [qkv, dqkv] = t.input("qkv", {time, batch, 3 * heads * d});
  const auto [y, dy] = t.result("y", {time, batch, heads * d});
  const Id log_sums = t.f32("log sums", {batch, heads, time});
  return t.step(
      "Attention_" + name,
      {Attention{.qkv = qkv, .y = y, .log_sums = log_sums, .heads = heads, .causal = causal},
       AttentionGrad{.qkv = qkv,
                     .y = y,
                     .log_sums = log_sums,
                     .dy = dy,
                     .dqkv = dqkv,
                     .heads = heads,
                     .causal = causal}});
}

OperationGradientCase recurrent(const Cell& cell, std::int64_t time, std::int64_t batch,
                                std::int64_t in, std::int64_t hidden, const std::string& name) {
  Builder t;
  const CellFacts facts = facts_of(cell);
  const std::int64_t gates = facts.gates * hidden;
  const Shape wide{time, batch, gates};
  Recurrent op{.cell = cell};
  RecurrentGrad grad{.cell = cell};
  std::tie(op.x, grad.dx) = t.input("x", {time, batch, in});
  std::tie(op.w_ih, grad.dw_ih) = t.input("w_ih", {gates, in});
  std::tie(op.w_hh, grad.dw_hh) = t.input("w_hh", {gates, hidden});
  if (time == 1) {
    t.gradients.pop_back();  // which is 0
  }
  std::tie(op.b_ih, grad.db_ih) = t.input("b_ih", {gates});
  std::tie(op.b_hh, grad.db_hh) = t.input("b_hh", {gates});
  std::tie(op.h, grad.dh) = t.result("h", {time, batch, hidden});
  op.gates = t.f32("gates", wide);
  op.kept = t.f32("kept", {time, batch, hidden});
  grad.x = op.x;
  grad.w_ih = op.w_ih;
  grad.w_hh = op.w_hh;
  grad.h = op.h;
  grad.gates = op.gates;
  grad.kept = op.kept;
  grad.di = t.f32("di", wide);
  grad.dk = facts.is_apart ? t.f32("dk", wide) : none;
  grad.carry = t.f32("carry", facts.keeps_state ? Shape{2, batch, hidden} : Shape{batch, hidden});
  return t.step(op.name() + ("_" + name), {op, grad});
}

OperationGradientCase softmax(const Shape& shape, std::int64_t heads, bool causal,
                              const std::string& name) {
  Builder t;
  const auto [x, dx] = t.input("x", shape);
  const auto [y, dy] = t.result("y", shape);
  return t.step("Softmax_" + name, {Softmax{.x = x, .y = y, .heads = heads, .causal = causal},
                                    SoftmaxGrad{.y = y, .dy = dy, .dx = dx, .heads = heads}});
}

/// With the gradients that its layer asks for.
OperationGradientCase matmul(const Shape& of_a, const Shape& of_b, const Shape& of_y,
                             std::int64_t heads, bool transpose, const std::string& name) {
  Builder t;
  const auto [a, da] = t.input("a", of_a);
  const auto [b, db] = t.input("b", of_b);
  const auto [y, dy] = t.result("y", of_y);
  Matmul product{.a = a, .b = b, .y = y, .heads = heads, .transpose_b = transpose, .scale = 0.5};
  Matmul to_a{.a = dy, .b = b, .y = da, .heads = heads, .transpose_b = !transpose, .scale = 0.5};
  Matmul to_b{.a = transpose ? dy : a,
              .b = transpose ? a : dy,
              .y = db,
              .heads = heads,
              .transpose_a = true,
              .scale = 0.5};
  return t.step("Matmul_" + name, {product, to_a, to_b});
}

OperationGradientCase activation(Activation activation, const std::string& name) {
  Builder t;
  const auto [x, dx] = t.input("x wide", {5, 9});
  const auto [y, dy] = t.result("y", {5, 9});
  return t.step("Activate_" + name, {Activate{.x = x, .y = y, .activation = activation},
                                     ActivateGrad{.at = derivative_takes_input(activation) ? x : y,
                                                  .dy = dy,
                                                  .dx = dx,
                                                  .activation = activation}});
}

OperationGradientCase function_of(const Function& function) {
  Builder t;
  const bool is_of_positive =
      std::visit([]<class Of>(const Of& /*of*/) { return IsOfPositive<Of>; }, function);
  const bool grows = std::holds_alternative<functions::Exponential>(function);
  const auto [x, dx] = t.input(is_of_positive ? "x far" : grows ? "x" : "x wide", {5, 9});
  const auto [y, dy] = t.result("y", {5, 9});
  const std::string name = std::visit([](const auto& of) { return of.name; }, function);
  return t.step("Map_" + name, {Map{.x = x, .y = y, .function = function},
                                MapGrad{.x = x, .dy = dy, .dx = dx, .function = function}});
}

OperationGradientCase loss_over_time() {
  Builder t;
  const auto [logits, dlogits] = t.input("logits", {3, 4, 5});
  const Id labels = t.i32("labels", {4, 3});
  const Id loss = t.tensor("loss", {1}, Role::loss);
  t.results = {{loss, {}}};
  return t.step(
      "SoftmaxCrossEntropy_over_time",
      {SoftmaxCrossEntropy{.logits = logits, .labels = labels, .loss = loss, .dlogits = dlogits}},
      5);
}

OperationGradientCase loss_of_elements(LossFunction function, const std::string& name) {
  Builder t;
  const auto [logits, dlogits] = t.input("logits wide", {4, 5});
  const Id targets = t.f32("targets positive", {4, 5});
  const Id loss = t.tensor("loss", {1}, Role::loss);
  t.results = {{loss, {}}};
  return t.step("ElementwiseLoss_" + name, {ElementwiseLoss{.logits = logits,
                                                            .targets = targets,
                                                            .loss = loss,
                                                            .dlogits = dlogits,
                                                            .function = function}});
}

std::vector<OperationGradientCase> operation_gradient_cases() {
  constexpr auto identity = Activation::identity;
  constexpr auto relu = Activation::relu;
  constexpr auto sigmoid = Activation::sigmoid;
  const Window half3_ceil{.size = 3, .stride = 2, .ceil = true};
  const Window half3{.size = 3, .stride = 2, .padding = 1};
  const Window partly{.size = 4, .stride = 3, .padding = 2, .ceil = true};
  std::vector<OperationGradientCase> all{
      convolution({1, 1, 1, 1}, 1, {}, "1x1"),
      convolution({2, 3, 4, 5}, 2, {}, "of_points"),
      convolution({2, 3, 5, 4}, 2, {.size = 1, .stride = 2}, "of_every_other_point"),
      convolution({2, 2, 5, 7}, 3, {.size = 3, .padding = 1}, "odd"),
      convolution({2, 3, 6, 7}, 2, half3, "half"),
      convolution({1, 2, 11, 9}, 2, {.size = 5, .stride = 4, .padding = 2}, "sparse"),
      convolution({2, 1, 3, 3}, 2, {.size = 3, .padding = 2}, "mostly_padding"),
      convolution({2, 2, 3, 3}, 2, {.size = 3}, "whole_image"),
      convolution({2, 3, 5, 4}, 3, {.size = 3, .padding = 1}, "depthwise", 3),
      convolution({2, 4, 5, 4}, 6, half3, "of_groups", 2),
      convolution({2, 2, 7, 6}, 3, {.size = 3, .padding = 2, .dilation = 2}, "dilated"),
      convolution({2, 3, 1, 9}, 2, {.size = {1, 4}, .stride = {1, 2}, .padding = {0, 1}}, "line"),
      convolution({1, 2, 7, 6}, 3,
                  {.size = {2, 3}, .stride = {3, 1}, .padding = {1, 0}, .dilation = {2, 1}},
                  "uneven"),
      transposed({2, 3, 6, 4}, 2, {.size = 2, .stride = 2}, "pairs"),
      transposed({2, 3, 6, 8}, 2, half3, "output_padding"),
      transposed({2, 4, 5, 4}, 6, half3, "of_groups", 2),
      upsample({2, 3, 6, 4}, 2),
      transposed({1, 4, 1, 9}, 2, {.size = {1, 3}, .stride = {1, 2}}, "line", 2),
      upsample({1, 2, 3, 6}, 3),
      upsample({1, 2, 3, 6}, {1, 2}),
      interpolated({2, 2, 3, 4}, {6, 8}, false),
      interpolated({1, 2, 3, 4}, {5, 3}, true),
      interpolated({1, 2, 7, 4}, {2, 5}, false),
      norm({.kind = NormKind::group, .groups = 2}, {2, 6, 3, 2}, "pairs"),
      norm({.kind = NormKind::group, .groups = 3}, {2, 3, 2, 4}, "of_channels"),
      max_pool({2, 3, 7, 8}, half3_ceil, identity, "ceil"),
      max_pool({2, 3, 7, 8}, half3_ceil, relu, "relu"),
      max_pool({2, 2, 5, 6}, {.size = {1, 3}, .stride = {2, 2}, .padding = {0, 1}}, identity,
               "line"),
      max_pool({1, 2, 6, 5}, half3, sigmoid, "sigmoid"),
      max_pool({1, 2, 7, 7}, {.size = 2, .stride = 3}, identity, "gaps"),
      average_pool({2, 3, 7, 8}, half3_ceil, identity, "ceil"),
      average_pool({2, 3, 7, 8}, half3_ceil, relu, "relu"),
      average_pool({2, 2, 5, 6}, {.size = {3, 1}, .stride = {2, 1}, .padding = {1, 0}}, identity,
                   "pillar"),
      average_pool({1, 2, 6, 5}, partly, sigmoid, "partly_covered"),
      average_pool({1, 2, 7, 7}, {.size = 2, .stride = 3}, identity, "gaps"),
      global_average_pool({2, 3, 4, 5}, ""),
      global_average_pool({4, 3, 5}, "_over_time"),
      rearrange({{2, 3, 4, 5}, {2, 1, 4, 5}}, 1, "channels"),
      rearrange({{4, 3}, {4, 2}, {4, 1}}, 1, "rows"),
      to_sequence({2, 3, 2, 5}),
      multiply({4, 3}, {4, 3}, "rows"),
      multiply({2, 3, 4, 5}, {2, 3}, "gate"),
      multiply({4, 3, 5}, {3, 5}, "gate_over_time"),
      norm({}, {3, 2, 3, 4}, "plain"),
      norm({.activation = relu}, {3, 2, 3, 4}, "relu"),
      norm({.activation = relu}, {2, 3, 4, 3}, "all", {.addend = true, .more = true}),
      norm({}, {4, 1, 1, 1}, "points", {.addend = true}),
      dropout(0.5, "half"),
      dropout(0.25, "a_quarter"),
      embedding(5, 3, 11, "odd"),
      embedding(4, 3, 2, "repeated"),
      position_embedding(4, 3),
      norm({.kind = NormKind::layer}, {4, 5}, "rows"),
      norm({.kind = NormKind::layer}, {4, 5}, "rms", {.mean = false, .shift = false}),
      norm({.kind = NormKind::layer}, {4, 5}, "no_bias", {.shift = false}),
      norm({.kind = NormKind::layer}, {4, 5}, "bare", {.scale = false, .shift = false}),
      norm({.kind = NormKind::layer}, {4, 5}, "rms_bare",
           {.mean = false, .scale = false, .shift = false}),
      norm({.kind = NormKind::layer}, {2, 3, 4}, "three_dimensions"),
      attention(5, 2, 2, 3, false, "odd"),
      attention(5, 2, 2, 3, true, "causal"),
      recurrent(LstmCell{}, 1, 2, 3, 2, "one_time_step"),
      recurrent(LstmCell{}, 4, 2, 3, 2, "odd"),
      recurrent(LstmCell{}, 3, 1, 1, 1, "one_unit"),
      softmax({4, 5}, 1, false, "rows"),
      softmax({4, 2, 6}, 2, false, "heads"),
      softmax({4, 2, 8}, 2, true, "causal"),
      matmul({4, 2, 3}, {3, 2, 5}, {4, 2, 5}, 1, false, "plain"),
      matmul({4, 2, 6}, {5, 2, 6}, {4, 2, 10}, 2, true, "heads_transposed"),
      matmul({4, 2, 6}, {3, 2, 4}, {4, 2, 4}, 2, false, "heads"),
      matmul({2, 3}, {5, 2, 3}, {2, 5}, 1, true, "vector"),
      matmul({2, 3}, {2, 3}, {2, 1}, 1, true, "vectors"),
      recurrent(GruCell{}, 1, 2, 3, 2, "one_time_step"),
      recurrent(GruCell{}, 4, 2, 3, 2, "odd"),
      loss_over_time(),
      loss_of_elements(LossFunction::mse, "mse"),
      loss_of_elements(LossFunction::bce, "bce"),
  };
  for (const auto& [name, of] : named_activations) {
    all.push_back(activation(of, name));
  }
  for (const Function& function : function_examples()) {
    all.push_back(function_of(function));
  }
  return all;
}

class OperationGradient : public testing::TestWithParam<OperationGradientCase> {};

TEST_P(OperationGradient, MatchesFiniteDifferences) {
  const OperationCase& step = GetParam().step;
  const Workload& workload = step.workload;
  Reference reference(workload);
  const auto count = static_cast<Id>(workload.tensors.size());
  for (Id id = 0; id < count; ++id) {
    const std::vector<double> values = values_for(step, id);
    std::copy(values.begin(), values.end(), reference[id].begin());
  }
  const auto run = [&] {
    for (Id id = 0; id < count; ++id) {
      if (workload[id].type == Type::i32) {  // a step counts on
        const std::vector<double> values = values_for(step, id);
        std::copy(values.begin(), values.end(), reference[id].begin());
      }
    }
    reference.run(0, 1);
    double sum = 0;
    for (const auto& [result, factors] : GetParam().results) {
      const auto values = reference[result];
      if (factors.empty()) {
        sum = std::accumulate(values.begin(), values.end(), sum);
      }
      for (const Id factor : factors) {
        sum = std::inner_product(values.begin(), values.end(), reference[factor].begin(), sum);
      }
    }
    return sum;
  };
  for (const auto& [id, gradient_id] : GetParam().gradients) {
    run();
    const std::vector<double> gradient = copy(reference[gradient_id]);
    EXPECT_GT(relative_error(gradient, std::vector<double>(gradient.size())), 0)
        << "no gradient at all";
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      constexpr double h = 1e-6;
      double& value = reference[id][i];
      const double before = value;
      value = before + h;
      const double above = run();
      value = before - h;
      const double below = run();
      value = before;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * h), 2e-8)
          << workload[id].name << " element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Reference, OperationGradient,
                         testing::ValuesIn(operation_gradient_cases()),
                         [](const auto& parameters) { return parameters.param.step.name; });

}  // namespace
}  // namespace crossover::test
