// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/embedding.h"

#include <algorithm>

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
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

/// body(token, where the row of its position begins in [time, batch, width]) for each position.
template <class Body>
void for_each_token(ReferenceRun& run, Id tokens, std::int64_t width, const Body& body) {
  const std::int64_t batch = run.shape(tokens)[0];
  const std::int64_t time = run.shape(tokens)[1];
  const double* token = run.at(tokens);
  for (std::int64_t t = 0; t < time; ++t) {
    for (std::int64_t b = 0; b < batch; ++b) {
      body(static_cast<std::int64_t>(token[b * time + t]), (t * batch + b) * width);
    }
    alive();
  }
}

}  // namespace

// ---- Embedding

void Embedding::check(const Fit& fit) const {
  fit.expect(y, result(fit, tokens, table), fit.number(table));
}

Cost Embedding::cost(const Workload& /*workload*/) const { return {.launches = 1}; }

void Embedding::execute(ReferenceRun& run) const {
  const std::int64_t width = run.shape(table)[1];
  for_each_token(run, tokens, width, [&](std::int64_t token, std::int64_t row) {
    std::copy_n(run.at(table) + token * width, width, run.at(y) + row);
  });
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

void EmbeddingGrad::execute(ReferenceRun& run) const {
  const std::int64_t width = run.shape(dtable)[1];
  std::fill_n(run.at(dtable), run.size(dtable), 0.0);
  for_each_token(run, tokens, width, [&](std::int64_t token, std::int64_t row) {
    const double* from = run.at(dy) + row;
    double* to = run.at(dtable) + token * width;
    for (std::int64_t i = 0; i < width; ++i) {
      to[i] += from[i];
    }
  });
}

}  // namespace crossover
