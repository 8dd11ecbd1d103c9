// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/softmax.h"

#include <algorithm>
#include <cmath>

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "fit.h"

namespace crossover {
namespace {

void check_parts(const Fit& fit, Id of, std::int64_t heads) {
  const Tensor& rows = fit.at(of);
  fit.require(!rows.shape.empty() && heads > 0 && rows.shape.back() % heads == 0,
              "rows of '" + rows.name + "' " + to_string(rows.shape) + " can't be divided into " +
                  std::to_string(heads) + " equal parts");
}

}  // namespace

// ---- Softmax

void Softmax::check(const Fit& fit) const {
  check_parts(fit, x, heads);
  fit.require(!causal || fit.at(x).shape.size() == 3,
              "'" + fit.at(x).name + "' " + to_string(fit.at(x).shape) +
                  " is no sequence, in which later places could be left out");
  fit.expect(y, fit.at(x).shape, fit.number(x));
}

std::int64_t Softmax::seen(const Shape& shape, std::int64_t row) const {
  const std::int64_t keys = shape.back() / heads;
  return causal ? std::min(keys, row / shape[1] + 1) : keys;
}

/// Largest, difference, exponential, sum and quotient, of each number that is seen.
Cost Softmax::cost(const Workload& workload) const {
  const Shape& shape = workload[x].shape;
  const std::int64_t places = causal ? shape[0] : 1;
  const std::int64_t rows = leading(shape) / places;  // that see alike
  std::int64_t numbers = 0;
  for (std::int64_t place = 0; place < places; ++place) {
    numbers += rows * heads * seen(shape, place * rows);
  }
  return {.flops = 5 * static_cast<double>(numbers), .launches = 1};
}

void Softmax::execute(ReferenceRun& run) const {
  const Shape& shape = run.shape(x);
  const std::int64_t keys = shape.back() / heads;
  for (std::int64_t part = 0; part < leading(shape) * heads; ++part) {
    const double* from = run.at(x) + part * keys;
    double* to = run.at(y) + part * keys;
    const std::int64_t count = seen(shape, part / heads);
    const double largest = *std::max_element(from, from + count);
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = std::exp(from[i] - largest);
      sum += to[i];
    }
    std::for_each(to, to + count, [sum](double& e) { e /= sum; });
    std::fill(to + count, to + keys, 0.0);
    alive();
  }
}

// ---- SoftmaxGrad

void SoftmaxGrad::check(const Fit& fit) const {
  check_parts(fit, y, heads);
  for (const Id id : {dy, dx}) {
    fit.expect(id, fit.at(y).shape, fit.number(y));
  }
}

/// Product and sum, difference and product.
Cost SoftmaxGrad::cost(const Workload& workload) const {
  return {.flops = 4 * count(workload, y), .launches = 1};
}

void SoftmaxGrad::execute(ReferenceRun& run) const {
  const Shape& shape = run.shape(y);
  const std::int64_t keys = shape.back() / heads;
  for (std::int64_t part = 0; part < leading(shape) * heads; ++part) {
    const double* of_y = run.at(y) + part * keys;
    const double* of_dy = run.at(dy) + part * keys;
    double* to = run.at(dx) + part * keys;
    double sum = 0;
    for (std::int64_t i = 0; i < keys; ++i) {
      sum += of_dy[i] * of_y[i];
    }
    for (std::int64_t i = 0; i < keys; ++i) {
      to[i] = of_y[i] * (of_dy[i] - sum);
    }
    alive();
  }
}

}  // namespace crossover
