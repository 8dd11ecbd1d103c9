// SPDX-License-Identifier: Apache-2.0
// Operations on sequences.
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "cases.h"

namespace crossover {
namespace {

using Case = OperationCase;

Case embedding(std::int64_t time, std::int64_t batch, std::int64_t vocabulary, std::int64_t width,
               const std::string& name) {
  OneOp one;
  const Id tokens = one.tensor("tokens", {batch, time}, Role::activation, Type::i32);
  const Id table = one.tensor("table", {vocabulary, width}, Role::parameter);
  one.operation(
      Embedding{.tokens = tokens, .table = table, .y = one.tensor("y", {time, batch, width})});
  return {"Embedding_" + name, one.workload, vocabulary};
}

Case embedding_grad(std::int64_t time, std::int64_t batch, std::int64_t vocabulary,
                    std::int64_t width, const std::string& name) {
  OneOp one;
  const Id tokens = one.tensor("tokens", {batch, time}, Role::activation, Type::i32);
  const Id dy = one.tensor("dy", {time, batch, width});
  const Id dtable = one.tensor("dtable", {vocabulary, width}, Role::gradient);
  one.operation(EmbeddingGrad{.tokens = tokens, .dy = dy, .dtable = dtable});
  return {"EmbeddingGrad_" + name, one.workload, vocabulary};
}

struct RecurrentShape {
  std::int64_t time, batch, in, hidden;
};

/// The operation with tensors for all that forward and backward pass have alike.
template <class Recurrence>
Recurrence recurrence(OneOp& one, const Cell& cell, const RecurrentShape& of,
                      const std::string& gates) {
  const Shape states{of.time, of.batch, of.hidden};
  const std::int64_t wide = of.hidden * facts_of(cell).gates;
  Recurrence op{.cell = cell};
  op.x = one.tensor("x", {of.time, of.batch, of.in});
  op.w_ih = one.tensor("w_ih", {wide, of.in}, Role::parameter);
  op.w_hh = one.tensor("w_hh", {wide, of.hidden}, Role::parameter);
  if constexpr (std::is_same_v<Recurrence, Recurrent>) {
    op.b_ih = one.tensor("b_ih", {wide}, Role::parameter);
    op.b_hh = one.tensor("b_hh", {wide}, Role::parameter);
  }
  op.h = one.tensor("h", states);
  op.gates = one.tensor(gates, {of.time, of.batch, wide});
  op.kept = one.tensor("kept", states);
  return op;
}

Case recurrent(const Cell& cell, const RecurrentShape& of, const std::string& name) {
  OneOp one;
  const auto op = recurrence<Recurrent>(one, cell, of, "gates");
  return {op.name() + ("_" + name), one.operation(op).workload};
}

Case recurrent_grad(const Cell& cell, const RecurrentShape& of, bool dx, const std::string& name) {
  OneOp one;
  auto op = recurrence<RecurrentGrad>(one, cell, of, "gates positive");
  const auto shape_of = [&](Id id) { return Shape(one.workload[id].shape); };
  Shape carried{of.batch, of.hidden};
  if (facts_of(cell).keeps_state) {
    carried.insert(carried.begin(), 2);
  }
  op.dh = one.tensor("dh", shape_of(op.h));
  op.di = one.tensor(facts_of(cell).di_name, shape_of(op.gates));
  op.dk = op.is_apart() ? one.tensor("dk", shape_of(op.gates)) : none;
  op.carry = one.tensor("carry", carried);
  op.dw_ih = one.tensor("dw_ih", shape_of(op.w_ih), Role::gradient);
  op.dw_hh = one.tensor("dw_hh", shape_of(op.w_hh), Role::gradient);
  op.db_ih = one.tensor("db_ih", {shape_of(op.w_ih)[0]}, Role::gradient);
  op.db_hh = one.tensor("db_hh", {shape_of(op.w_ih)[0]}, Role::gradient);
  op.dx = dx ? one.tensor("dx", shape_of(op.x)) : none;
  return {op.name() + ("_" + name), one.operation(op).workload};
}

Case position_embedding(const Shape& of, const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x", of);
  const Id table = one.tensor("table", {of[0], of[2]}, Role::parameter);
  one.operation(PositionEmbedding{.x = x, .table = table, .y = one.tensor("y", of)});
  return {"PositionEmbedding_" + name, one.workload};
}

Case position_embedding_grad(const Shape& of, const std::string& name) {
  OneOp one;
  const Id dy = one.tensor("dy", of);
  one.operation(PositionEmbeddingGrad{
      .dy = dy, .dtable = one.tensor("dtable", {of[0], of[2]}, Role::gradient)});
  return {"PositionEmbeddingGrad_" + name, one.workload};
}

/// Of heads of `d` numbers.
struct AttentionShape {
  std::int64_t time, batch, heads, d;
  bool causal;

  [[nodiscard]] Shape qkv() const { return {time, batch, 3 * heads * d}; }
  [[nodiscard]] Shape y() const { return {time, batch, heads * d}; }
  [[nodiscard]] Shape log_sums() const { return {batch, heads, time}; }
};

Case attention(const AttentionShape& shape, const std::string& name) {
  OneOp one;
  const Id qkv = one.tensor("qkv", shape.qkv());
  const Id y = one.tensor("y", shape.y());
  const Id log_sums = one.tensor("log sums", shape.log_sums());
  one.operation(Attention{
      .qkv = qkv, .y = y, .log_sums = log_sums, .heads = shape.heads, .causal = shape.causal});
  return {"Attention_" + name, one.workload};
}

Case attention_grad(const AttentionShape& shape, const std::string& name) {
  OneOp one;
  const Id qkv = one.tensor("qkv", shape.qkv());
  const Id y = one.tensor("y", shape.y());
  const Id log_sums = one.tensor("log sums positive", shape.log_sums());
  const Id dy = one.tensor("dy", shape.y());
  one.operation(AttentionGrad{.qkv = qkv,
                              .y = y,
                              .log_sums = log_sums,
                              .dy = dy,
                              .dqkv = one.tensor("dqkv", shape.qkv()),
                              .heads = shape.heads,
                              .causal = shape.causal});
  return {"AttentionGrad_" + name, one.workload};
}

/// Tensors of these shapes joined in a dimension, or made of their whole again.
Case concatenation(const std::vector<Shape>& parts, std::size_t axis, bool splits,
                   const std::string& name) {
  OneOp one;
  std::vector<Id> ids;
  Shape shape = parts.front();
  shape[axis] = 0;
  for (const Shape& part : parts) {
    ids.push_back(one.tensor("part " + std::to_string(ids.size()), part));
    shape[axis] += part[axis];
  }
  const std::vector<Id> whole{one.tensor("whole", shape)};
  std::vector<CopiedBlock> blocks = joined(parts, axis);
  one.operation(splits ? Rearrange{.x = whole, .y = ids, .blocks = reversed(std::move(blocks))}
                       : Rearrange{.x = ids, .y = whole, .blocks = std::move(blocks)});
  return {"Rearrange_" + name, one.workload};
}

/// Of tokens where that is the type; `back`: in the middle of zeros.
Case part(const Shape& whole, std::size_t axis, std::int64_t from, std::int64_t to, bool back,
          const std::string& name, Type type = Type::f32) {
  OneOp one;
  Shape own = whole;
  own[axis] = to - from;
  const Id x = one.tensor("x", whole, Role::activation, type);
  const Id y = one.tensor("y", own, Role::activation, type);
  const std::vector<CopiedBlock> blocks{part_of(whole, axis, from, to)};
  one.operation(back ? Rearrange{.x = {y}, .y = {x}, .blocks = reversed(blocks)}
                     : Rearrange{.x = {x}, .y = {y}, .blocks = blocks});
  return {"Rearrange_" + name, one.workload, 1000};
}

Case image_and_sequence(const Shape& image, bool back, const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x", image);
  const Id y = one.tensor("y", {image[2] * image[3], image[0], image[1]});
  one.operation(back ? Rearrange{.x = {y}, .y = {x}, .blocks = reversed(as_sequence(image))}
                     : Rearrange{.x = {x}, .y = {y}, .blocks = as_sequence(image)});
  return {"Rearrange_" + name, one.workload};
}

/// An image with zeros around it, or cut.
Case padded(const Shape& image, const Shape& before, const Shape& whole, const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x", image);
  const Id y = one.tensor("y", whole);
  one.operation(Rearrange{.x = {x}, .y = {y}, .blocks = {within(image, whole, before)}});
  return {"Rearrange_" + name, one.workload};
}

/// One vector in front of every sample, and what nothing reaches.
Case spread_vector(std::int64_t batch, std::int64_t width, const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x", {width});
  const Id y = one.tensor("y", {3, batch, width});
  one.operation(Rearrange{
      .x = {x},
      .y = {y},
      .blocks = {{.to_first = batch * width, .extents = {{batch, 0, width}, {width, 1, 1}}}}});
  return {"Rearrange_" + name, one.workload};
}

/// Of sequences, time first; labels batch first.
Case loss_over_time(std::int64_t time, std::int64_t batch, std::int64_t classes,
                    const std::string& name) {
  OneOp one;
  const Shape shape{time, batch, classes};
  const Id logits = one.tensor("logits", shape);
  const Id labels = one.tensor("labels", {batch, time}, Role::activation, Type::i32);
  const Id loss = one.tensor("loss", {1}, Role::loss);
  one.operation(SoftmaxCrossEntropy{
      .logits = logits, .labels = labels, .loss = loss, .dlogits = one.tensor("dlogits", shape)});
  return {name, one.workload, classes};
}

}  // namespace

std::vector<Case> sequence_cases() {
  const Norm layer{.kind = NormKind::layer};
  const NormGrad layer_grad{.kind = NormKind::layer};
  std::vector<Case> all{
      norm_grad(layer_grad, {300, 33}, "no_bias_parts", {.shift = false}),
      norm_grad(layer_grad, {7, 40}, "first_layer", {.dx = false}),
      norm_grad(layer_grad, {7, 40}, "rms_first_layer",
                {.mean = false, .shift = false, .dx = false}),
      concatenation({{1, 1}, {1, 1}}, 1, false, "one"),
      concatenation({{5, 7}, {5, 3}, {5, 1}}, 1, false, "rows"),
      concatenation({{3, 5, 7}, {3, 5, 2}}, 2, true, "split_rows"),
      concatenation({{2, 4, 3}, {5, 4, 3}}, 0, false, "in_time"),
      concatenation({{2, 3, 4, 5}, {2, 2, 4, 5}}, 1, false, "channels"),
      concatenation({{2, 16, 3, 4}, {2, 32, 3, 4}}, 1, false, "whole_blocks"),
      concatenation({{2, 16, 3, 4}, {2, 5, 3, 4}}, 1, true, "split_uneven"),
      concatenation({{2, 16, 3, 4}, {2, 32, 3, 4}}, 1, true, "split_whole_blocks"),
      concatenation({{8, 32, 17, 19}, {8, 64, 17, 19}}, 1, false, "large"),
      concatenation({{8, 32, 17, 19}, {8, 64, 17, 19}}, 1, true, "split_large"),
      image_and_sequence({1, 1, 1, 1}, false, "image_of_one"),
      image_and_sequence({2, 5, 3, 4}, false, "image"),
      image_and_sequence({2, 32, 3, 4}, false, "image_of_blocks"),
      image_and_sequence({2, 5, 3, 4}, true, "sequence"),
      image_and_sequence({2, 32, 3, 4}, true, "sequence_of_blocks"),
      image_and_sequence({32, 48, 8, 8}, false, "image_large"),
      image_and_sequence({32, 48, 8, 8}, true, "sequence_large"),
      padded({2, 3, 4, 5}, {0, 0, 1, 2}, {2, 3, 7, 8}, "padded"),
      padded({2, 16, 4, 5}, {0, 0, 0, 2}, {2, 16, 4, 7}, "padded_columns"),
      padded({2, 16, 1, 9}, {0, 0, 0, 3}, {2, 16, 1, 12}, "padded_line"),
      padded({2, 16, 1, 9}, {0, 0, 0, 0}, {2, 16, 1, 7}, "cut_line"),
      padded({2, 16, 6, 5}, {0, 0, -1, 2}, {2, 16, 4, 6}, "cut_and_padded"),
      padded({2, 5, 4, 3}, {0, 2, 0, 0}, {2, 9, 4, 3}, "padded_channels"),
      padded({2, 16, 4, 3}, {0, 16, 0, 0}, {2, 48, 4, 3}, "padded_blocks"),
      padded({2, 5, 4, 3}, {0, -1, 1, 0}, {2, 3, 6, 3}, "cut_channels"),
      padded({2, 16, 1, 1}, {0, 0, 1, 1}, {2, 16, 3, 3}, "padded_points"),
      padded({16, 32, 20, 20}, {0, 0, 1, 1}, {16, 32, 22, 22}, "padded_large"),
      spread_vector(3, 5, "spread"),
      part({5, 7}, 1, 2, 6, false, "part_of_rows"),
      part({5, 7}, 1, 2, 6, true, "among_zeros"),
      part({5, 7}, 1, 0, 1, false, "part_of_tokens", Type::i32),
      part({4, 3, 5}, 0, 1, 3, true, "among_zeros_in_time"),
      part({2, 21, 3, 4}, 1, 5, 16, false, "part_of_channels"),
      part({2, 21, 3, 4}, 1, 5, 16, true, "channels_among_zeros"),
      part({2, 48, 3, 4}, 1, 16, 32, true, "blocks_among_zeros"),
      loss_over_time(3, 5, 7, "SoftmaxCrossEntropy_over_time"),
      loss_over_time(32, 4, 1003, "SoftmaxCrossEntropy_over_time_large"),
  };
  struct Words {
    std::int64_t time, batch, vocabulary, width;
    const char* name;
  };
  for (const Words& of : {Words{1, 1, 1, 1, "one"},
                          {5, 3, 11, 7, "odd"},
                          {9, 2, 3, 17, "repeated"},
                          {32, 16, 1000, 200, "large"}}) {
    all.push_back(embedding(of.time, of.batch, of.vocabulary, of.width, of.name));
    all.push_back(embedding_grad(of.time, of.batch, of.vocabulary, of.width, of.name));
  }
  for (const auto& [shape, name] :
       {std::pair{Shape{1, 1, 1}, "one"}, {{5, 3, 7}, "odd"}, {{64, 16, 200}, "large"}}) {
    all.push_back(position_embedding(shape, name));
    all.push_back(position_embedding_grad(shape, name));
  }
  add_norms(all, layer, {1, 1}, "one");
  add_norms(all, layer, {5, 33}, "odd");
  add_norms(all, layer, {2, 3, 16}, "three_dimensions");
  add_norms(all, layer, {64, 12, 200}, "large");
  add_norms(all, layer, {9, 1031}, "wide");
  add_norms(all, layer, {5, 33}, "rms_odd", {.mean = false, .shift = false});
  add_norms(all, layer, {64, 12, 200}, "rms_large", {.mean = false, .shift = false});
  add_norms(all, layer, {5, 33}, "no_bias", {.shift = false});
  add_norms(all, layer, {5, 33}, "bare", {.scale = false, .shift = false});
  add_norms(all, layer, {5, 33}, "rms_bare", {.mean = false, .scale = false, .shift = false});
  for (const auto& [shape, name] : {std::pair{AttentionShape{1, 1, 1, 1, false}, "one"},
                                    {{1, 2, 3, 4, true}, "one_place"},
                                    {{5, 3, 2, 7, false}, "odd"},
                                    {{5, 3, 2, 7, true}, "odd_causal"},
                                    {{33, 2, 1, 40, true}, "over_vectors"},
                                    {{3, 1, 1, 128, false}, "wide_head"},
                                    {{5, 19, 3, 7, false}, "of_several"},
                                    {{16, 16, 4, 4, true}, "of_several_causal"},
                                    {{32, 9, 2, 6, true}, "of_several_large"},
                                    {{64, 6, 2, 64, false}, "large"},
                                    {{64, 6, 2, 64, true}, "large_causal"}}) {
    all.push_back(attention(shape, name));
    all.push_back(attention_grad(shape, name));
  }
  const std::vector<std::pair<RecurrentShape, std::string>> recurrences{
      {{1, 1, 1, 1}, "one"},          {{1, 3, 5, 4}, "one_time_step"}, {{4, 3, 5, 7}, "odd"},
      {{5, 1, 9, 6}, "one_sequence"}, {{3, 32, 96, 64}, "large"},
  };
  for (const Cell& cell : {Cell{LstmCell{}}, Cell{GruCell{}}}) {
    for (const auto& [shape, name] : recurrences) {
      all.push_back(recurrent(cell, shape, name));
      all.push_back(recurrent_grad(cell, shape, name != "one_sequence", name));
    }
  }
  return all;
}

}  // namespace crossover
