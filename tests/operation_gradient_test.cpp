// SPDX-License-Identifier: Apache-2.0
// The reference's gradients of single operations against finite differences of what they are
// gradients of.
#include <gtest/gtest.h>

#include <numeric>
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

/// The same tensors again, for the operations that follow each other in a step.
struct Builder : OneOp {
  Id f32(const std::string& name, const Shape& shape) { return tensor(name, shape); }
  Id i32(const std::string& name, const Shape& shape) {
    return tensor(name, shape, Role::activation, Type::i32);
  }
  OperationCase step(const std::string& name, std::vector<Op> ops, std::int64_t classes = 2) {
    workload.steps = {Step{std::move(ops)}};
    workload.order = {crossover::Run{}};
    return {name, workload, classes};
  }
};

Shape result_shape(const Shape& x, std::int64_t channels, const Window& window) {
  return windowed(window, x, channels);
}

OperationGradientCase convolution(const Shape& shape, std::int64_t out, const Window& window,
                                  const std::string& name, std::int64_t groups = 1) {
  Builder t;
  const Shape weights{out, shape[1] / groups, window.size.down, window.size.across};
  const Shape result = result_shape(shape, out, window);
  const Id x = t.f32("x", shape);
  const Id w = t.f32("w", weights);
  const Id bias = t.f32("bias", {out});
  const Id y = t.f32("y", result);
  const Id dy = t.f32("dy", result);
  const Id dx = t.f32("dx", shape);
  const Id dw = t.f32("dw", weights);
  const Id dbias = t.f32("dbias", {out});
  return {
      t.step("Convolution_" + name,
             {Convolution{.x = x, .w = w, .bias = bias, .y = y, .window = window},
              ConvolutionGrad{
                  .x = x, .w = w, .dy = dy, .dx = dx, .dw = dw, .dbias = dbias, .window = window}}),
      {{y, {dy}}},
      {{x, dx}, {w, dw}, {bias, dbias}}};
}

/// As TransposedConvolutionLayer has it, of images that become those of shape `result`.
OperationGradientCase transposed(const Shape& result, std::int64_t in, const Window& window,
                                 const std::string& name, std::int64_t groups = 1) {
  Builder t;
  const Shape weights{in, result[1] / groups, window.size.down, window.size.across};
  const Shape shape = result_shape(result, in, window);
  const Id x = t.f32("x", shape);
  const Id w = t.f32("w", weights);
  const Id bias = t.f32("bias", {result[1]});
  const Id y = t.f32("y", result);
  const Id dy = t.f32("dy", result);
  const Id dx = t.f32("dx", shape);
  const Id dw = t.f32("dw", weights);
  const Id dbias = t.f32("dbias", {result[1]});
  return {t.step("TransposedConvolution_" + name,
                 {ConvolutionGrad{.w = w, .dy = x, .dx = y, .window = window, .bias = bias},
                  Convolution{.x = dy, .w = w, .y = dx, .window = window},
                  ConvolutionGrad{.x = dy, .w = w, .dy = x, .dw = dw, .window = window},
                  ChannelBiasGrad{.dy = dy, .dbias = dbias}}),
          {{y, {dy}}},
          {{x, dx}, {w, dw}, {bias, dbias}}};
}

/// As UpsampleLayer has it.
OperationGradientCase upsample(const Shape& result, const Pair& factor) {
  Builder t;
  const Window window{.size = factor, .stride = factor};
  const Shape shape = result_shape(result, result[1], window);
  const Id x = t.f32("x", shape);
  const Id y = t.f32("y", result);
  const Id dy = t.f32("dy", result);
  const Id dx = t.f32("dx", shape);
  return {t.step("Upsample_" + to_string(factor),
                 {PoolGrad{.kind = PoolKind::sum, .dy = x, .dx = y, .window = window},
                  Pool{.kind = PoolKind::sum, .x = dy, .y = dx, .window = window}}),
          {{y, {dy}}},
          {{x, dx}}};
}

OperationGradientCase max_pool(const Shape& shape, const Window& window, Activation activation,
                               const std::string& name) {
  Builder t;
  const Shape result = result_shape(shape, shape[1], window);
  const Id z = t.f32("z", shape);
  const Id x = t.f32("x", shape);
  const Id y = t.f32("y", result);
  const Id where = t.tensor("where", result, Role::activation, Type::u8);
  const Id dy = t.f32("dy", result);
  const Id dz = t.f32("dz", shape);
  return {t.step("MaxPool_" + name, {Activate{.x = z, .y = x, .activation = activation},
                                     Pool{.x = x, .y = y, .where = where, .window = window},
                                     PoolGrad{.made = y,
                                              .where = where,
                                              .dy = dy,
                                              .dx = dz,
                                              .window = window,
                                              .x_activation = activation}}),
          {{y, {dy}}},
          {{z, dz}}};
}

OperationGradientCase average_pool(const Shape& shape, const Window& window, Activation activation,
                                   const std::string& name) {
  Builder t;
  const Shape result = result_shape(shape, shape[1], window);
  const Id z = t.f32("z", shape);
  const Id x = t.f32("x", shape);
  const Id y = t.f32("y", result);
  const Id dy = t.f32("dy", result);
  const Id dz = t.f32("dz", shape);
  return {t.step("AveragePool_" + name,
                 {Activate{.x = z, .y = x, .activation = activation},
                  Pool{.kind = PoolKind::average, .x = x, .y = y, .window = window},
                  PoolGrad{.kind = PoolKind::average,
                           .made = x,
                           .dy = dy,
                           .dx = dz,
                           .window = window,
                           .x_activation = activation}}),
          {{y, {dy}}},
          {{z, dz}}};
}

OperationGradientCase global_average_pool(const Shape& shape, const std::string& name) {
  Builder t;
  const Id x = t.f32("x", shape);
  const Id y = t.f32("y", without_places(shape));
  const Id dy = t.f32("dy", without_places(shape));
  const Id dx = t.f32("dx", shape);
  return {t.step("GlobalAveragePool" + name,
                 {Pool{.kind = PoolKind::global_average, .x = x, .y = y},
                  PoolGrad{.kind = PoolKind::global_average, .dy = dy, .dx = dx}}),
          {{y, {dy}}},
          {{x, dx}}};
}

OperationGradientCase rearrange(const std::vector<Shape>& parts, std::size_t axis,
                                const std::string& name) {
  Builder t;
  std::vector<Id> x;
  std::vector<Id> dx;
  Shape whole = parts.front();
  whole[axis] = 0;
  std::vector<std::pair<Id, Id>> gradients;
  for (const Shape& part : parts) {
    x.push_back(t.f32("x" + std::to_string(x.size()), part));
    dx.push_back(t.f32("dx" + std::to_string(x.size()), part));
    gradients.emplace_back(x.back(), dx.back());
    whole[axis] += part[axis];
  }
  const Id y = t.f32("y", whole);
  const Id dy = t.f32("dy", whole);
  const std::vector<CopiedBlock> blocks = joined(parts, axis);
  return {t.step("Rearrange_" + name, {Rearrange{.x = x, .y = {y}, .blocks = blocks},
                                       Rearrange{.x = {dy}, .y = dx, .blocks = reversed(blocks)}}),
          {{y, {dy}}},
          gradients};
}

OperationGradientCase to_sequence(const Shape& image) {
  Builder t;
  const Shape sequence{image[2] * image[3], image[0], image[1]};
  const Id x = t.f32("x", image);
  const Id y = t.f32("y", sequence);
  const Id dy = t.f32("dy", sequence);
  const Id dx = t.f32("dx", image);
  return {t.step("Rearrange_to_sequence",
                 {Rearrange{.x = {x}, .y = {y}, .blocks = as_sequence(image)},
                  Rearrange{.x = {dy}, .y = {dx}, .blocks = reversed(as_sequence(image))}}),
          {{y, {dy}}},
          {{x, dx}}};
}

OperationGradientCase multiply(const Shape& whole, const Shape& factor, const std::string& name) {
  Builder t;
  const Id a = t.f32("a", whole);
  const Id b = t.f32("b", factor);
  const Id y = t.f32("y", whole);
  const Id dy = t.f32("dy", whole);
  const Id da = t.f32("da", whole);
  const Id db = t.f32("db", factor);
  return {t.step("Multiply_" + name, {Multiply{.a = a, .b = b, .y = y},
                                      MultiplyGrad{.a = a, .b = b, .dy = dy, .da = da, .db = db}}),
          {{y, {dy}}},
          {{a, da}, {b, db}}};
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
  op.x = t.f32("x", shape);
  op.scale = has.scale ? t.f32("scale", channels) : none;
  op.shift = has.shift ? t.f32("shift", channels) : none;
  op.addend = has.addend ? t.f32("addend", shape) : none;
  op.y = t.f32("y", shape);
  op.mean = has.mean ? t.f32("mean", statistics) : none;
  op.inverse_deviation = t.f32("inverse deviation", statistics);
  op.epsilon = 0.01;
  NormGrad grad{.kind = op.kind,
                .x = op.x,
                .scale = op.scale,
                .mean = op.mean,
                .inverse_deviation = op.inverse_deviation,
                .y = op.activation == Activation::identity ? none : op.y,
                .groups = op.groups,
                .activation = op.activation};
  grad.dy = t.f32("dy", shape);
  grad.dy_more = has.more ? t.f32("dy more", shape) : none;
  grad.dx = t.f32("dx", shape);
  grad.dscale = has.scale ? t.f32("dscale", channels) : none;
  grad.dshift = has.shift ? t.f32("dshift", channels) : none;
  grad.daddend = has.addend ? t.f32("daddend", shape) : none;
  OperationGradientCase c{t.step(std::string(op.name()) + "_" + name, {op, grad}),
                          {{op.y, {grad.dy}}},
                          {{op.x, grad.dx}}};
  if (has.more) {
    c.results[0].second.push_back(grad.dy_more);
  }
  for (const auto& [of, gradient] :
       {std::pair{op.scale, grad.dscale}, {op.shift, grad.dshift}, {op.addend, grad.daddend}}) {
    if (of != none) {
      c.gradients.emplace_back(of, gradient);
    }
  }
  return c;
}

OperationGradientCase dropout(double probability, const std::string& name) {
  Builder t;
  const Shape shape{7, 5};
  const Id x = t.f32("x", shape);
  const Id y = t.f32("y", shape);
  const Id step = t.i32("step", {1});
  const Id dy = t.f32("dy", shape);
  const Id dx = t.f32("dx", shape);
  return {t.step("Dropout_" + name,
                 {Dropout{.x = x, .y = y, .step = step, .probability = probability, .seed = 4},
                  DropoutGrad{
                      .dy = dy, .dx = dx, .step = step, .probability = probability, .seed = 4}}),
          {{y, {dy}}},
          {{x, dx}}};
}

OperationGradientCase embedding(std::int64_t time, std::int64_t batch, std::int64_t vocabulary,
                                const std::string& name) {
  Builder t;
  const std::int64_t width = 3;
  const Id tokens = t.i32("tokens", {batch, time});
  const Id table = t.f32("table", {vocabulary, width});
  const Id y = t.f32("y", {time, batch, width});
  const Id dy = t.f32("dy", {time, batch, width});
  const Id dtable = t.f32("dtable", {vocabulary, width});
  return {t.step("Embedding_" + name,
                 {Embedding{.tokens = tokens, .table = table, .y = y},
                  EmbeddingGrad{.tokens = tokens, .dy = dy, .dtable = dtable}},
                 vocabulary),
          {{y, {dy}}},
          {{table, dtable}}};
}

OperationGradientCase position_embedding(std::int64_t time, std::int64_t batch) {
  Builder t;
  const std::int64_t width = 3;
  const Id x = t.f32("x", {time, batch, width});
  const Id table = t.f32("table", {time, width});
  const Id y = t.f32("y", {time, batch, width});
  const Id dy = t.f32("dy", {time, batch, width});
  const Id dtable = t.f32("dtable", {time, width});
  return {t.step("PositionEmbedding", {PositionEmbedding{.x = x, .table = table, .y = y},
                                       PositionEmbeddingGrad{.dy = dy, .dtable = dtable}}),
          {{y, {dy}}},
          {{table, dtable}}};
}

OperationGradientCase attention(std::int64_t time, std::int64_t batch, std::int64_t heads,
                                std::int64_t d, bool causal, const std::string& name) {
  Builder t;
  const Shape all{time, batch, 3 * heads * d};
  const Shape result{time, batch, heads * d};
  const Id qkv = t.f32("qkv", all);
  const Id y = t.f32("y", result);
  const Id log_sums = t.f32("log sums", {batch, heads, time});
  const Id dy = t.f32("dy", result);
  const Id dqkv = t.f32("dqkv", all);
  return {
      t.step("Attention_" + name,
             {Attention{.qkv = qkv, .y = y, .log_sums = log_sums, .heads = heads, .causal = causal},
              AttentionGrad{.qkv = qkv,
                            .y = y,
                            .log_sums = log_sums,
                            .dy = dy,
                            .dqkv = dqkv,
                            .heads = heads,
                            .causal = causal}}),
      {{y, {dy}}},
      {{qkv, dqkv}}};
}

OperationGradientCase recurrent(const Cell& cell, std::int64_t time, std::int64_t batch,
                                std::int64_t in, std::int64_t hidden, const std::string& name) {
  Builder t;
  const CellFacts facts = facts_of(cell);
  const std::int64_t gates = facts.gates;
  const Shape states{time, batch, hidden};
  const Shape wide{time, batch, gates * hidden};
  const Recurrent op{.cell = cell,
                     .x = t.f32("x", {time, batch, in}),
                     .w_ih = t.f32("w_ih", {gates * hidden, in}),
                     .w_hh = t.f32("w_hh", {gates * hidden, hidden}),
                     .b_ih = t.f32("b_ih", {gates * hidden}),
                     .b_hh = t.f32("b_hh", {gates * hidden}),
                     .h = t.f32("h", states),
                     .gates = t.f32("gates", wide),
                     .kept = t.f32("kept", states)};
  const RecurrentGrad grad{
      .cell = cell,
      .x = op.x,
      .w_ih = op.w_ih,
      .w_hh = op.w_hh,
      .h = op.h,
      .gates = op.gates,
      .kept = op.kept,
      .dh = t.f32("dh", states),
      .di = t.f32("di", wide),
      .dk = facts.is_apart ? t.f32("dk", wide) : none,
      .carry = t.f32("carry", facts.keeps_state ? Shape{2, batch, hidden} : Shape{batch, hidden}),
      .dx = t.f32("dx", {time, batch, in}),
      .dw_ih = t.f32("dw_ih", {gates * hidden, in}),
      .dw_hh = t.f32("dw_hh", {gates * hidden, hidden}),
      .db_ih = t.f32("db_ih", {gates * hidden}),
      .db_hh = t.f32("db_hh", {gates * hidden})};
  OperationGradientCase all{
      t.step(op.name() + ("_" + name), {op, grad}),
      {{op.h, {grad.dh}}},
      {{op.x, grad.dx}, {op.w_ih, grad.dw_ih}, {op.b_ih, grad.db_ih}, {op.b_hh, grad.db_hh}}};
  if (time > 1) {
    all.gradients.emplace_back(op.w_hh, grad.dw_hh);
  }
  return all;
}

OperationGradientCase softmax(const Shape& shape, std::int64_t heads, bool causal,
                              const std::string& name) {
  Builder t;
  const Id x = t.f32("x", shape);
  const Id y = t.f32("y", shape);
  const Id dy = t.f32("dy", shape);
  const Id dx = t.f32("dx", shape);
  return {t.step("Softmax_" + name, {Softmax{.x = x, .y = y, .heads = heads, .causal = causal},
                                     SoftmaxGrad{.y = y, .dy = dy, .dx = dx, .heads = heads}}),
          {{y, {dy}}},
          {{x, dx}}};
}

/// With the gradients that its layer asks for.
OperationGradientCase matmul(const Shape& of_a, const Shape& of_b, const Shape& of_y,
                             std::int64_t heads, bool transpose, const std::string& name) {
  Builder t;
  const Id a = t.f32("a", of_a);
  const Id b = t.f32("b", of_b);
  const Id y = t.f32("y", of_y);
  const Id dy = t.f32("dy", of_y);
  const Id da = t.f32("da", of_a);
  const Id db = t.f32("db", of_b);
  Matmul product{.a = a, .b = b, .y = y, .heads = heads, .transpose_b = transpose, .scale = 0.5};
  Matmul to_a{.a = dy, .b = b, .y = da, .heads = heads, .transpose_b = !transpose, .scale = 0.5};
  Matmul to_b{.a = transpose ? dy : a,
              .b = transpose ? a : dy,
              .y = db,
              .heads = heads,
              .transpose_a = true,
              .scale = 0.5};
  return {t.step("Matmul_" + name, {product, to_a, to_b}), {{y, {dy}}}, {{a, da}, {b, db}}};
}

OperationGradientCase activation(Activation activation, const std::string& name) {
  Builder t;
  const Shape shape{5, 9};
  const Id x = t.f32("x wide", shape);
  const Id y = t.f32("y", shape);
  const Id dy = t.f32("dy", shape);
  const Id dx = t.f32("dx", shape);
  return {t.step("Activate_" + name, {Activate{.x = x, .y = y, .activation = activation},
                                      ActivateGrad{.at = derivative_takes_input(activation) ? x : y,
                                                   .dy = dy,
                                                   .dx = dx,
                                                   .activation = activation}}),
          {{y, {dy}}},
          {{x, dx}}};
}

OperationGradientCase function_of(const Function& function) {
  Builder t;
  const Shape shape{5, 9};
  const bool is_of_positive =
      std::visit([]<class Of>(const Of& /*of*/) { return IsOfPositive<Of>; }, function);
  const bool grows = std::holds_alternative<functions::Exponential>(function);
  const Id x = t.f32(is_of_positive ? "x far" : grows ? "x" : "x wide", shape);
  const Id y = t.f32("y", shape);
  const Id dy = t.f32("dy", shape);
  const Id dx = t.f32("dx", shape);
  const std::string name = std::visit([](const auto& of) { return of.name; }, function);
  return {t.step("Map_" + name, {Map{.x = x, .y = y, .function = function},
                                 MapGrad{.x = x, .dy = dy, .dx = dx, .function = function}}),
          {{y, {dy}}},
          {{x, dx}}};
}

OperationGradientCase loss_over_time() {
  Builder t;
  const Shape shape{3, 4, 5};
  const Id logits = t.f32("logits", shape);
  const Id labels = t.i32("labels", {4, 3});
  const Id loss = t.tensor("loss", {1}, Role::loss);
  const Id dlogits = t.f32("dlogits", shape);
  return {t.step("SoftmaxCrossEntropy_over_time",
                 {SoftmaxCrossEntropy{
                     .logits = logits, .labels = labels, .loss = loss, .dlogits = dlogits}},
                 5),
          {{loss, {}}},
          {{logits, dlogits}}};
}

OperationGradientCase loss_of_elements(LossFunction function, const std::string& name) {
  Builder t;
  const Shape shape{4, 5};
  const Id logits = t.f32("logits wide", shape);
  const Id targets = t.f32("targets positive", shape);
  const Id loss = t.tensor("loss", {1}, Role::loss);
  const Id dlogits = t.f32("dlogits", shape);
  return {t.step("ElementwiseLoss_" + name, {ElementwiseLoss{.logits = logits,
                                                             .targets = targets,
                                                             .loss = loss,
                                                             .dlogits = dlogits,
                                                             .function = function}}),
          {{loss, {}}},
          {{logits, dlogits}}};
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
