// SPDX-License-Identifier: Apache-2.0
// Operations on sequences.
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

Case lstm(std::int64_t time, std::int64_t batch, std::int64_t in, std::int64_t hidden,
          const std::string& name) {
  OneOp one;
  const std::int64_t wide = 4 * hidden;
  Lstm op{.x = one.tensor("x", {time, batch, in}),
          .w_ih = one.tensor("w_ih", {wide, in}, Role::parameter),
          .w_hh = one.tensor("w_hh", {wide, hidden}, Role::parameter),
          .b_ih = one.tensor("b_ih", {wide}, Role::parameter),
          .b_hh = one.tensor("b_hh", {wide}, Role::parameter),
          .h = one.tensor("h", {time, batch, hidden}),
          .gates = one.tensor("gates", {time, batch, wide}),
          .c = one.tensor("c", {time, batch, hidden})};
  return {"Lstm_" + name, one.operation(op).workload};
}

Case lstm_grad(std::int64_t time, std::int64_t batch, std::int64_t in, std::int64_t hidden, bool dx,
               const std::string& name) {
  OneOp one;
  const std::int64_t wide = 4 * hidden;
  LstmGrad op{.x = one.tensor("x", {time, batch, in}),
              .w_ih = one.tensor("w_ih", {wide, in}, Role::parameter),
              .w_hh = one.tensor("w_hh", {wide, hidden}, Role::parameter),
              .h = one.tensor("h", {time, batch, hidden}),
              .gates = one.tensor("gates positive", {time, batch, wide}),
              .c = one.tensor("c", {time, batch, hidden}),
              .dh = one.tensor("dh", {time, batch, hidden}),
              .dgates = one.tensor("dgates", {time, batch, wide}),
              .carry = one.tensor("carry", {2, batch, hidden}),
              .dx = none,
              .dw_ih = one.tensor("dw_ih", {wide, in}, Role::gradient),
              .dw_hh = one.tensor("dw_hh", {wide, hidden}, Role::gradient),
              .db_ih = one.tensor("db_ih", {wide}, Role::gradient),
              .db_hh = one.tensor("db_hh", {wide}, Role::gradient)};
  if (dx) {
    op.dx = one.tensor("dx", {time, batch, in});
  }
  return {"LstmGrad_" + name, one.operation(op).workload};
}

Case position_embedding(std::int64_t time, std::int64_t batch, std::int64_t width,
                        const std::string& name) {
  OneOp one;
  const Id x = one.tensor("x", {time, batch, width});
  const Id table = one.tensor("table", {time, width}, Role::parameter);
  one.operation(
      PositionEmbedding{.x = x, .table = table, .y = one.tensor("y", {time, batch, width})});
  return {"PositionEmbedding_" + name, one.workload};
}

Case position_embedding_grad(std::int64_t time, std::int64_t batch, std::int64_t width,
                             const std::string& name) {
  OneOp one;
  const Id dy = one.tensor("dy", {time, batch, width});
  one.operation(PositionEmbeddingGrad{
      .dy = dy, .dtable = one.tensor("dtable", {time, width}, Role::gradient)});
  return {"PositionEmbeddingGrad_" + name, one.workload};
}

Shape without_last(Shape shape) {
  shape.pop_back();
  return shape;
}

/// Without means where `is_rms`.
/// What else a normalization of rows may lack than its mean.
struct Lacks {
  bool weight = false, bias = false;
};

Case layer_norm(const Shape& shape, const std::string& name, bool is_rms = false,
                Lacks lacks = {}) {
  OneOp one;
  const Shape width{shape.back()};
  const Id x = one.tensor("x", shape);
  const Id weight = lacks.weight ? none : one.tensor("weight", width, Role::parameter);
  const Id bias = is_rms || lacks.bias ? none : one.tensor("bias", width, Role::parameter);
  const Id y = one.tensor("y", shape);
  const Id mean = is_rms ? none : one.tensor("mean", without_last(shape));
  const Id inverse_deviation = one.tensor("inverse deviation", without_last(shape));
  one.operation(LayerNorm{.x = x,
                          .weight = weight,
                          .bias = bias,
                          .y = y,
                          .mean = mean,
                          .inverse_deviation = inverse_deviation});
  return {"LayerNorm_" + name, one.workload};
}

Case layer_norm_grad(const Shape& shape, bool dx, const std::string& name, bool is_rms = false,
                     Lacks lacks = {}) {
  OneOp one;
  const Shape width{shape.back()};
  LayerNormGrad op{
      .x = one.tensor("x", shape),
      .weight = lacks.weight ? none : one.tensor("weight", width, Role::parameter),
      .mean = is_rms ? none : one.tensor("mean", without_last(shape)),
      .inverse_deviation = one.tensor("inverse deviation positive", without_last(shape)),
      .dy = one.tensor("dy", shape),
      .dx = none,
      .dweight = lacks.weight ? none : one.tensor("dweight", width, Role::gradient),
      .dbias = is_rms || lacks.bias ? none : one.tensor("dbias", width, Role::gradient)};
  if (dx) {
    op.dx = one.tensor("dx", shape);
  }
  return {"LayerNormGrad_" + name, one.operation(op).workload};
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
  return {
      embedding(1, 1, 1, 1, "one"),
      embedding(5, 3, 11, 7, "odd"),
      embedding(9, 2, 3, 17, "repeated"),
      embedding(32, 16, 1000, 200, "large"),
      embedding_grad(1, 1, 1, 1, "one"),
      embedding_grad(5, 3, 11, 7, "odd"),
      embedding_grad(9, 2, 3, 17, "repeated"),
      embedding_grad(32, 16, 1000, 200, "large"),
      position_embedding(1, 1, 1, "one"),
      position_embedding(5, 3, 7, "odd"),
      position_embedding(64, 16, 200, "large"),
      position_embedding_grad(1, 1, 1, "one"),
      position_embedding_grad(5, 3, 7, "odd"),
      position_embedding_grad(64, 16, 200, "large"),
      layer_norm({1, 1}, "one"),
      layer_norm({5, 33}, "odd"),
      layer_norm({2, 3, 16}, "three_dimensions"),
      layer_norm({64, 12, 200}, "large"),
      layer_norm({9, 1031}, "wide"),
      layer_norm({5, 33}, "rms_odd", true),
      layer_norm({64, 12, 200}, "rms_large", true),
      layer_norm({5, 33}, "no_bias", false, {.bias = true}),
      layer_norm({5, 33}, "bare", false, {.weight = true, .bias = true}),
      layer_norm({5, 33}, "rms_bare", true, {.weight = true}),
      layer_norm_grad({5, 33}, true, "no_bias", false, {.bias = true}),
      layer_norm_grad({300, 33}, true, "no_bias_parts", false, {.bias = true}),
      layer_norm_grad({5, 33}, true, "bare", false, {.weight = true, .bias = true}),
      layer_norm_grad({5, 33}, true, "rms_bare", true, {.weight = true}),
      layer_norm_grad({5, 33}, true, "rms_odd", true),
      layer_norm_grad({7, 40}, false, "rms_first_layer", true),
      layer_norm_grad({64, 12, 200}, true, "rms_large", true),
      layer_norm_grad({1, 1}, true, "one"),
      layer_norm_grad({5, 33}, true, "odd"),
      layer_norm_grad({7, 40}, false, "first_layer"),
      layer_norm_grad({2, 3, 16}, true, "three_dimensions"),
      layer_norm_grad({64, 12, 200}, true, "large"),
      layer_norm_grad({9, 1031}, true, "wide"),
      attention({1, 1, 1, 1, false}, "one"),
      attention({1, 2, 3, 4, true}, "one_place"),
      attention({5, 3, 2, 7, false}, "odd"),
      attention({5, 3, 2, 7, true}, "odd_causal"),
      attention({33, 2, 1, 40, true}, "over_vectors"),
      attention({3, 1, 1, 128, false}, "wide_head"),
      attention({64, 6, 2, 64, false}, "large"),
      attention({64, 6, 2, 64, true}, "large_causal"),
      attention_grad({1, 1, 1, 1, false}, "one"),
      attention_grad({1, 2, 3, 4, true}, "one_place"),
      attention_grad({5, 3, 2, 7, false}, "odd"),
      attention_grad({5, 3, 2, 7, true}, "odd_causal"),
      attention_grad({33, 2, 1, 40, true}, "over_vectors"),
      attention_grad({3, 1, 1, 128, false}, "wide_head"),
      attention_grad({64, 6, 2, 64, false}, "large"),
      attention_grad({64, 6, 2, 64, true}, "large_causal"),
      lstm(1, 1, 1, 1, "one"),
      lstm(1, 3, 5, 4, "one_time_step"),
      lstm(4, 3, 5, 7, "odd"),
      lstm(5, 1, 9, 6, "one_sequence"),
      lstm(3, 32, 96, 64, "large"),
      lstm_grad(1, 1, 1, 1, true, "one"),
      lstm_grad(1, 3, 5, 4, true, "one_time_step"),
      lstm_grad(4, 3, 5, 7, true, "odd"),
      lstm_grad(5, 1, 9, 6, false, "one_sequence"),
      lstm_grad(3, 32, 96, 64, true, "large"),
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
}

}  // namespace crossover
