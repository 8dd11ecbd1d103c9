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

Case layer_norm(const Shape& shape, const std::string& name) {
  OneOp one;
  const Shape width{shape.back()};
  const Id x = one.tensor("x", shape);
  const Id weight = one.tensor("weight", width, Role::parameter);
  const Id bias = one.tensor("bias", width, Role::parameter);
  const Id y = one.tensor("y", shape);
  const Id mean = one.tensor("mean", without_last(shape));
  const Id inverse_deviation = one.tensor("inverse deviation", without_last(shape));
  one.operation(LayerNorm{.x = x,
                          .weight = weight,
                          .bias = bias,
                          .y = y,
                          .mean = mean,
                          .inverse_deviation = inverse_deviation});
  return {"LayerNorm_" + name, one.workload};
}

Case layer_norm_grad(const Shape& shape, bool dx, const std::string& name) {
  OneOp one;
  const Shape width{shape.back()};
  LayerNormGrad op{
      .x = one.tensor("x", shape),
      .weight = one.tensor("weight", width, Role::parameter),
      .mean = one.tensor("mean", without_last(shape)),
      .inverse_deviation = one.tensor("inverse deviation positive", without_last(shape)),
      .dy = one.tensor("dy", shape),
      .dx = none,
      .dweight = one.tensor("dweight", width, Role::gradient),
      .dbias = one.tensor("dbias", width, Role::gradient)};
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
      loss_over_time(3, 5, 7, "SoftmaxCrossEntropy_over_time"),
      loss_over_time(32, 4, 1003, "SoftmaxCrossEntropy_over_time_large"),
  };
}

}  // namespace crossover
