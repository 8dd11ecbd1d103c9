// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/embedding.h"

#include <stdexcept>

#include "../reference/run.h"
#include "counting.h"
#include "fit.h"

namespace crossover {
namespace {

/// [time, batch, width] of tokens [batch, time] and a table [vocabulary, width].
Shape result(const Fit& fit, Id tokens, Id table) {
  const Shape& sequences = fit.at(tokens).shape;
  const Shape& rows = fit.at(table).shape;
  fit.require(sequences.size() == 2, "tokens '" + fit.at(tokens).name + "' are not [batch, time]");
  fit.require(rows.size() == 2, "table '" + fit.at(table).name + "' is not [vocabulary, width]");
  fit.expect(tokens, sequences, Type::i32);
  return {sequences[1], sequences[0], rows[1]};
}

}  // namespace

// ---- Embedding

void Embedding::check(const Fit& fit) const {
  fit.expect(y, result(fit, tokens, table), fit.number(table));
}

Cost Embedding::cost(const Workload& /*workload*/) const { return {.launches = 1}; }

std::vector<OpProduct> Embedding::products(const Workload& /*workload*/) const { return {}; }

void Embedding::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no Embedding yet");
}

// ---- EmbeddingGrad

void EmbeddingGrad::check(const Fit& fit) const {
  fit.expect(dy, result(fit, tokens, dtable), fit.number(dy));
  fit.expect(dtable, fit.at(dtable).shape);
}

/// Each element of dy is added once.
Cost EmbeddingGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dy), .launches = 1};
}

std::vector<OpProduct> EmbeddingGrad::products(const Workload& /*workload*/) const { return {}; }

void EmbeddingGrad::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no EmbeddingGrad yet");
}

}  // namespace crossover
