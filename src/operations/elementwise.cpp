// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/elementwise.h"

#include <algorithm>

#include "../reference/run.h"
#include "crossover/alive.h"
#include "crossover/functions.h"
#include "crossover/random.h"
#include "fit.h"

namespace crossover {

namespace {

/// y = function(x).
template <class Which>
void map(ReferenceRun& run, const Which& which, Id x, Id y) {
  const double* from = run.at(x);
  double* to = run.at(y);
  with_function(which, [&](const auto& of) {
    for_each_index(run.size(x),
                   [&](std::int64_t i) { to[i] = of.value(ScalarMaths<double>(), from[i]); });
  });
}

/// dx = dy * function'.
template <class Which>
void map_grad(ReferenceRun& run, const Which& which, Id at, Id dy, Id dx) {
  const double* point = run.at(at);
  const double* from = run.at(dy);
  double* to = run.at(dx);
  with_function(which, [&](const auto& of) {
    for_each_index(run.size(at), [&](std::int64_t i) {
      to[i] = of.gradient(ScalarMaths<double>(), from[i], point[i]);
    });
  });
}

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

template <class Op>
void check_mask(const Fit& fit, const Op& op) {
  fit.require(op.probability >= 0 && op.probability < 1, "drops with a probability in [0, 1)");
  fit.require(op.draw >= 0 && op.draw < op.draws, "draws one of the masks of a step");
}

/// to = from where an element is kept, times what keeps the mean.
template <class Op>
void drop(const Op& op, const double* from, double* to, std::int64_t count, double step) {
  const auto time = static_cast<std::int32_t>(step) + static_cast<std::int32_t>(offset_of_mask(op));
#pragma omp parallel for schedule(static) if (count > 100000)
  for (std::int64_t i = 0; i < count; ++i) {
    const bool kept =
        dropout_uniform(op.seed, time, static_cast<std::uint64_t>(i)) >= op.probability;
    to[i] = kept ? from[i] / (1 - op.probability) : 0;
  }
}

}  // namespace

void Activate::check(const Fit& fit) const { fit.expect(y, fit.at(x).shape, fit.number(x)); }

Cost Activate::cost(const Workload& workload) const {
  return {.flops = flops(activation) * count(workload, y), .launches = 1};
}

void Activate::execute(ReferenceRun& run) const { map(run, activation, x, y); }

void ActivateGrad::check(const Fit& fit) const {
  fit.expect(dy, fit.at(at).shape, fit.number(at));
  fit.expect(dx, fit.at(at).shape, fit.number(at));
}

Cost ActivateGrad::cost(const Workload& workload) const {
  return {.flops = derivative_flops(activation) * count(workload, dx), .launches = 1};
}

void ActivateGrad::execute(ReferenceRun& run) const { map_grad(run, activation, at, dy, dx); }

void Map::check(const Fit& fit) const { fit.expect(y, fit.at(x).shape, fit.number(x)); }

Cost Map::cost(const Workload& workload) const {
  const double flops = std::visit([](const auto& of) { return of.flops; }, function);
  return {.flops = flops * count(workload, y), .launches = 1};
}

void Map::execute(ReferenceRun& run) const { map(run, function, x, y); }

void MapGrad::check(const Fit& fit) const {
  fit.expect(dy, fit.at(x).shape, fit.number(x));
  fit.expect(dx, fit.at(x).shape, fit.number(x));
}

Cost MapGrad::cost(const Workload& workload) const {
  const double flops = std::visit([](const auto& of) { return of.derivative_flops; }, function);
  return {.flops = flops * count(workload, dx), .launches = 1};
}

void MapGrad::execute(ReferenceRun& run) const { map_grad(run, function, x, dy, dx); }

void Add::check(const Fit& fit) const {
  fit.expect(b, fit.at(a).shape, fit.number(a));
  fit.expect(y, fit.at(a).shape, fit.number(a));
}

Cost Add::cost(const Workload& workload) const {
  return {.flops = count(workload, y), .launches = 1};
}

void Add::execute(ReferenceRun& run) const {
  const double* left = run.at(a);
  const double* right = run.at(b);
  double* sum = run.at(y);
  const std::int64_t size = run.size(y);
  for_each_index(size, [&](std::int64_t i) { sum[i] = left[i] + right[i]; });
}

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

void MultiplyGrad::check(const Fit& fit) const {
  const Type type = fit.number(dy);
  const Shape& whole = fit.at(dy).shape;
  fit.require(da != none || db != none, "it has nothing to write");
  fit.require((da == none || b != none) && (db == none || a != none), "it lacks a factor");
  for (const Id id : {a, da}) {
    fit.expect_if_any(id, whole, type);
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

void Dropout::check(const Fit& fit) const {
  check_mask(fit, *this);
  fit.expect(y, fit.at(x).shape, fit.number(x));
  fit.expect(step, {1}, Type::i32);
}

/// The generator's arithmetic is on integers, and counts for nothing.
Cost Dropout::cost(const Workload& workload) const {
  return {.flops = count(workload, y), .launches = 1};
}

void Dropout::execute(ReferenceRun& run) const {
  *run.at(step) += static_cast<double>(draws);
  drop(*this, run.at(x), run.at(y), run.size(y), *run.at(step));
}

void DropoutGrad::check(const Fit& fit) const {
  check_mask(fit, *this);
  fit.expect(dx, fit.at(dy).shape, fit.number(dy));
  fit.expect(step, {1}, Type::i32);
}

Cost DropoutGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dx), .launches = 1};
}

void DropoutGrad::execute(ReferenceRun& run) const {
  drop(*this, run.at(dy), run.at(dx), run.size(dx), *run.at(step));
}

}  // namespace crossover
