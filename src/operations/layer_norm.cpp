// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "fit.h"

namespace crossover {
namespace {

/// That what a normalization without means or weights lacks as well is none.
void check_absent(const Fit& fit, Id mean, Id weight, Id bias) {
  fit.require(bias == none || (mean != none && weight != none),
              "it has a bias, and no mean or no weight");
}

/// That each of `statistics` that there is has a number for each row of x, and each of `columns`
/// one for each column.
void check_rows(const Fit& fit, Id x, const std::vector<Id>& statistics,
                const std::vector<Id>& columns) {
  Shape rows = fit.at(x).shape;
  fit.require(!rows.empty(), "'" + fit.at(x).name + "' is a single number, not rows of them");
  const Shape width{rows.back()};
  rows.pop_back();
  const auto expect_all = [&](const std::vector<Id>& ids, const Shape& shape) {
    for (const Id id : ids) {
      if (id != none) {
        fit.expect(id, shape);
      }
    }
  };
  expect_all(statistics, rows);
  expect_all(columns, width);
}

/// body(row, where it begins) for each row of a tensor [..., width].
template <class Body>
void for_each_row(const Shape& shape, const Body& body) {
  const std::int64_t rows = leading(shape);
  for (std::int64_t row = 0; row < rows; ++row) {
    body(row, row * shape.back());
    alive();
  }
}

}  // namespace

// ---- LayerNorm

void LayerNorm::check(const Fit& fit) const {
  fit.expect(y, fit.at(x).shape, fit.number(x));
  check_absent(fit, mean, weight, bias);
  check_rows(fit, x, {mean, inverse_deviation}, {weight, bias});
}

/// Sum, sum of squared differences (3), then difference, two factors and bias. Without means the
/// sum of squares (2) and two factors. A weight or a bias that is none is not counted.
Cost LayerNorm::cost(const Workload& workload) const {
  const int of_all = mean == none ? 3 : 6;
  const int of_parameters = (weight == none ? 0 : 1) + (bias == none ? 0 : 1);
  return {.flops = (of_all + of_parameters) * count(workload, x), .launches = 1};
}

void LayerNorm::execute(ReferenceRun& run) const {
  const std::int64_t width = run.shape(x).back();
  const auto of_row = static_cast<double>(width);
  for_each_row(run.shape(x), [&](std::int64_t row, std::int64_t first) {
    const double* from = run.at(x) + first;
    double* to = run.at(y) + first;
    double sum = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      sum += from[i];
    }
    const double middle = mean == none ? 0 : sum / of_row;
    double squares = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      squares += (from[i] - middle) * (from[i] - middle);
    }
    const double inverse = 1 / std::sqrt(squares / of_row + epsilon);
    if (mean != none) {
      run.at(mean)[row] = middle;
    }
    run.at(inverse_deviation)[row] = inverse;
    for (std::int64_t i = 0; i < width; ++i) {
      to[i] = (weight == none ? 1 : run.at(weight)[i]) * ((from[i] - middle) * inverse) +
              (bias == none ? 0 : run.at(bias)[i]);
    }
  });
}

// ---- LayerNormGrad

void LayerNormGrad::check(const Fit& fit) const {
  const Type type = fit.number(x);
  fit.expect(dy, fit.at(x).shape, type);
  if (dx != none) {
    fit.expect(dx, fit.at(x).shape, type);
  }
  check_absent(fit, mean, weight, dbias);
  fit.require((weight == none) == (dweight == none), "it has one of weight and dweight");
  fit.require(dx != none || dweight != none, "it has nothing to write");
  check_rows(fit, x, {mean, inverse_deviation}, {weight, dweight, dbias});
}

/// x' (2) and the sums for weight (2) and bias (1); for dx dz (1), its sums (3) and what they give
/// (4). Without means x' (1) and the sum (2); dz, its sum (2) and what it gives (3). What is none
/// is not counted.
Cost LayerNormGrad::cost(const Workload& workload) const {
  const bool centred = mean != none;
  const int of_sums = (dweight == none ? 0 : 2) + (dbias == none ? 0 : 1);
  const int of_weight = weight == none ? 0 : 1;
  return {.flops = ((centred ? 2 : 1) + of_sums) * count(workload, x) +
                   ((centred ? 7 : 5) + of_weight) * count(workload, dx),
          .launches = 1};
}

void LayerNormGrad::execute(ReferenceRun& run) const {
  const std::int64_t width = run.shape(x).back();
  if (dweight != none) {
    std::fill_n(run.at(dweight), width, 0.0);
  }
  if (dbias != none) {
    std::fill_n(run.at(dbias), width, 0.0);
  }
  for_each_row(run.shape(x), [&](std::int64_t row, std::int64_t first) {
    const double* gradient = run.at(dy) + first;
    const auto factor = [&](std::int64_t i) { return weight == none ? 1 : run.at(weight)[i]; };
    const double inverse = run.at(inverse_deviation)[row];
    const auto normalized = [from = run.at(x) + first,
                             middle = mean == none ? 0 : run.at(mean)[row],
                             inverse](std::int64_t i) { return (from[i] - middle) * inverse; };
    double sum = 0;
    double products = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      if (dweight != none) {
        run.at(dweight)[i] += gradient[i] * normalized(i);
      }
      if (dbias != none) {
        run.at(dbias)[i] += gradient[i];
      }
      sum += mean == none ? 0 : gradient[i] * factor(i);
      products += gradient[i] * factor(i) * normalized(i);
    }
    for (std::int64_t i = 0; i < width && dx != none; ++i) {
      run.at(dx)[first + i] =
          inverse *
          (gradient[i] * factor(i) - (sum + normalized(i) * products) / static_cast<double>(width));
    }
  });
}

}  // namespace crossover
