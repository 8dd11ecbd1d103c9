// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/linear.h"

#include <algorithm>

#include "../reference/multiply.h"
#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "crossover/elementwise.h"
#include "fit.h"

namespace crossover {
namespace {

/// x [..., in] through w [out, in] gives [..., out].
Shape linear_result(const Fit& fit, Id x, Id w) {
  fit.require(fit.at(w).shape.size() == 2, "weights '" + fit.at(w).name + "' are not a matrix");
  fit.require(!fit.at(x).shape.empty() && fit.at(x).shape.back() == fit.at(w).shape[1],
              "'" + fit.at(x).name + "' " + to_string(fit.at(x).shape) +
                  " does not fit the weights " + to_string(fit.at(w).shape));
  Shape result = fit.at(x).shape;
  result.back() = fit.at(w).shape[0];
  return result;
}

/// Each value of the result side meets each weight of its row once.
double product_flops(const Workload& workload, Id x, Id w) {
  return 2.0 * static_cast<double>(leading(workload[x].shape)) * count(workload, w);
}

}  // namespace

// ---- Linear

void Linear::check(const Fit& fit) const {
  const Shape result = linear_result(fit, x, w);
  const Type type = fit.number(x);
  fit.expect(w, fit.at(w).shape, type);
  const Type result_type = fit.number_or_f32(y, type);
  fit.expect(y, result, result_type);
  if (bias != none) {
    fit.expect(bias, {fit.at(w).shape[0]}, result_type);
  }
}

Cost Linear::cost(const Workload& workload) const {
  return {.flops = product_flops(workload, x, w) + (bias != none ? count(workload, y) : 0) +
                   flops(activation) * count(workload, y),
          .launches = activation != Activation::identity ? 2 : 1};
}

std::vector<OpProduct> Linear::products(const Workload& workload) const {
  const Shape& weights = workload[w].shape;
  return {{{.m = leading(workload[x].shape),
            .n = weights[0],
            .k = weights[1],
            .transpose_b = true,
            .type = workload[x].type},
           "forward"}};
}

void Linear::execute(ReferenceRun& run) const {
  const std::int64_t rows = leading(run.shape(x));
  const std::int64_t in = run.shape(w)[1];
  const std::int64_t out = run.shape(w)[0];
  double* result = run.at(y);
  multiply(rows, out, in, {run.at(x), in, 1}, {run.at(w), 1, in}, result, false);
  const double* added = bias != none ? run.at(bias) : nullptr;
  for_each_index(rows * out, [&](std::int64_t i) {
    result[i] = activate(activation, result[i] + (added != nullptr ? added[i % out] : 0));
  });
}

// ---- LinearGrad

void LinearGrad::check(const Fit& fit) const {
  const Shape result = linear_result(fit, x, w);
  const Type type = fit.number(x);
  fit.expect(w, fit.at(w).shape, type);
  fit.expect(dy, result, type);
  fit.expect(dw, fit.at(w).shape);
  if (dbias != none) {
    fit.expect(dbias, {fit.at(w).shape[0]});
  }
  if (dx != none) {
    fit.expect(dx, fit.at(x).shape, type);
  }
  fit.expect_derivative_from_result(x_activation);
}

Cost LinearGrad::cost(const Workload& workload) const {
  Cost sum{.flops = product_flops(workload, x, w), .launches = 1};
  if (accumulate) {
    sum +=
        {.flops = count(workload, dw) + count(workload, dbias), .launches = dbias != none ? 2 : 1};
  }
  if (dbias != none) {
    sum += {.flops = count(workload, dy), .launches = 1};
  }
  if (dx != none) {
    sum += {.flops = product_flops(workload, x, w) +
                     derivative_flops(x_activation) * count(workload, dx),
            .launches = x_activation != Activation::identity ? 2 : 1};
  }
  return sum;
}

std::vector<OpProduct> LinearGrad::products(const Workload& workload) const {
  const Shape& weights = workload[w].shape;
  const std::int64_t rows = leading(workload[x].shape);
  const Type type = workload[x].type;
  std::vector<OpProduct> all;
  if (dx != none) {
    all.push_back({{.m = rows, .n = weights[1], .k = weights[0], .type = type}, "dx"});
  }
  all.push_back(
      {{.m = weights[0], .n = weights[1], .k = rows, .transpose_a = true, .type = type}, "dw"});
  return all;
}

void LinearGrad::execute(ReferenceRun& run) const {
  const std::int64_t rows = leading(run.shape(x));
  const std::int64_t in = run.shape(w)[1];
  const std::int64_t out = run.shape(w)[0];
  const double* from = run.at(dy);
  if (dx != none) {
    double* to = run.at(dx);
    multiply(rows, in, out, {from, out, 1}, {run.at(w), in, 1}, to, false);
    const double* result = run.at(x);
    for_each_index(rows * in, [&](std::int64_t i) {
      to[i] *= derivative_from_result(x_activation, result[i]);
    });
  }
  multiply(out, in, rows, {from, 1, out}, {run.at(x), in, 1}, run.at(dw), accumulate);
  if (dbias != none) {
    double* sums = run.at(dbias);
    if (!accumulate) {
      std::fill_n(sums, out, 0.0);
    }
    for_each_index(rows * out, [&](std::int64_t i) { sums[i % out] += from[i]; });
  }
}

}  // namespace crossover
