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
