// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/position_embedding.h"

#include <algorithm>

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "fit.h"

namespace crossover {
namespace {

/// [time, width] of a sequence [time, batch, width].
Shape table_of(const Fit& fit, Id sequence) {
  const Tensor& tensor = fit.at(sequence);
  fit.require(tensor.shape.size() == 3, "tensor '" + tensor.name + "' " + to_string(tensor.shape) +
                                            " is not [time, batch, width]");
  return {tensor.shape[0], tensor.shape[2]};
}

/// body(element of the sequence, element of the table) for each element of the sequence.
template <class Body>
void for_each_element(const Shape& sequence, const Body& body) {
  const std::int64_t batch = sequence[1];
  const std::int64_t width = sequence[2];
  for_each_index(elements(sequence),
                 [&](std::int64_t i) { body(i, i / (batch * width) * width + i % width); });
}

}  // namespace

// ---- PositionEmbedding

void PositionEmbedding::check(const Fit& fit) const {
  const Type type = fit.number(x);
  fit.expect(table, table_of(fit, x), type);
  fit.expect(y, fit.at(x).shape, type);
}

Cost PositionEmbedding::cost(const Workload& workload) const {
  return {.flops = count(workload, y), .launches = 1};
}

void PositionEmbedding::execute(ReferenceRun& run) const {
  for_each_element(run.shape(x), [&](std::int64_t i, std::int64_t of_table) {
    run.at(y)[i] = run.at(x)[i] + run.at(table)[of_table];
  });
}

// ---- PositionEmbeddingGrad

void PositionEmbeddingGrad::check(const Fit& fit) const {
  fit.expect(dy, fit.at(dy).shape, fit.number(dy));
  fit.expect(dtable, table_of(fit, dy));
}

Cost PositionEmbeddingGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dy), .launches = 1};
}

void PositionEmbeddingGrad::execute(ReferenceRun& run) const {
  std::fill_n(run.at(dtable), run.size(dtable), 0.0);
  for_each_element(run.shape(dy), [&](std::int64_t i, std::int64_t of_table) {
    run.at(dtable)[of_table] += run.at(dy)[i];
  });
}

}  // namespace crossover
