// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/multiply.h"

#include <algorithm>

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "fit.h"

namespace crossover {
namespace {

void check_factor(const Fit& fit, const Shape& whole, Id b, Type type) {
  const Tensor& factor = fit.at(b);
  fit.require(factor.shape == whole || is_gate_of(whole, factor.shape),
              "tensor '" + factor.name + "' " + to_string(factor.shape) + " is neither " +
                  to_string(whole) + " nor a number for all places of that");
  fit.expect(b, factor.shape, type);
}

/// The element of the factor for element i of the whole.
std::int64_t factor_at(const Shape& whole, const Shape& factor, std::int64_t i) {
  return is_gate_of(whole, factor) ? Places(whole).shared(i) : i;
}

}  // namespace

// ---- Multiply

void Multiply::check(const Fit& fit) const {
  const Type type = fit.number(a);
  const Shape& whole = fit.at(a).shape;
  fit.expect(y, whole, type);
  check_factor(fit, whole, b, type);
}

Cost Multiply::cost(const Workload& workload) const {
  return {.flops = count(workload, y), .launches = 1};
}

void Multiply::execute(ReferenceRun& run) const {
  for_each_index(run.size(y), [&](std::int64_t i) {
    run.at(y)[i] = run.at(a)[i] * run.at(b)[factor_at(run.shape(a), run.shape(b), i)];
  });
}

// ---- MultiplyGrad

void MultiplyGrad::check(const Fit& fit) const {
  const Type type = fit.number(dy);
  const Shape& whole = fit.at(dy).shape;
  fit.require(da != none || db != none, "it has nothing to write");
  fit.require((da == none || b != none) && (db == none || a != none), "it lacks a factor");
  for (const Id id : {a, da}) {
    if (id != none) {
      fit.expect(id, whole, type);
    }
  }
  for (const Id id : {b, db}) {
    if (id != none) {
      check_factor(fit, whole, id, type);
    }
  }
}

/// db: a product, and where it is summed an addition.
Cost MultiplyGrad::cost(const Workload& workload) const {
  const bool sums = db != none && is_gate_of(workload[dy].shape, workload[db].shape);
  const double of_db = db == none ? 0 : sums ? 2 : 1;
  return {.flops = count(workload, da) + of_db * count(workload, dy), .launches = 1};
}

void MultiplyGrad::execute(ReferenceRun& run) const {
  if (db != none) {
    std::fill_n(run.at(db), run.size(db), 0.0);
  }
  for_each_index(run.size(dy), [&](std::int64_t i) {
    const double slope = run.at(dy)[i];
    if (da != none) {
      run.at(da)[i] = slope * run.at(b)[factor_at(run.shape(dy), run.shape(b), i)];
    }
    if (db != none) {
      run.at(db)[factor_at(run.shape(dy), run.shape(db), i)] += slope * run.at(a)[i];
    }
  });
}

}  // namespace crossover
