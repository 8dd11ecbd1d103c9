// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/matmul.h"

#include <utility>

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "fit.h"

namespace crossover {
namespace {

MatricesOf checked(const Fit& fit, Id id, std::int64_t heads, bool transposed) {
  const Tensor& tensor = fit.at(id);
  const std::string what = "'" + tensor.name + "' " + to_string(tensor.shape);
  fit.require(tensor.shape.size() == 2 || tensor.shape.size() == 3,
              what + " is neither [time, batch, width] nor [batch, width]");
  fit.require(heads > 0 && tensor.shape.back() % heads == 0,
              what + " can't be divided into " + std::to_string(heads) + " heads");
  return {tensor.shape, heads, transposed};
}

}  // namespace

MatricesOf::MatricesOf(const Shape& shape, std::int64_t heads, bool transposed)
    : rows(shape.size() == 2 ? 1 : shape[0]),
      columns(shape.back() / heads),
      samples(shape[shape.size() - 2]),
      sample_step(shape.back()),
      head_step(columns),
      row_step(samples * sample_step),
      column_step(1) {
  if (transposed) {
    std::swap(rows, columns);
    std::swap(row_step, column_step);
  }
}

void Matmul::check(const Fit& fit) const {
  const MatricesOf left = checked(fit, a, heads, transpose_a);
  const MatricesOf right = checked(fit, b, heads, transpose_b);
  const MatricesOf result = checked(fit, y, heads, false);
  fit.require(left.columns == right.rows && result.rows == left.rows &&
                  result.columns == right.columns && left.samples == right.samples &&
                  left.samples == result.samples,
              "'" + fit.at(a).name + "' " + to_string(fit.at(a).shape) + " times '" +
                  fit.at(b).name + "' " + to_string(fit.at(b).shape) + " is not '" +
                  fit.at(y).name + "' " + to_string(fit.at(y).shape));
  for (const Id id : {b, y}) {
    fit.expect(id, fit.at(id).shape, fit.number(a));
  }
}

/// And the factor, where there is one.
Cost Matmul::cost(const Workload& workload) const {
  const MatricesOf left(workload[a].shape, heads, transpose_a);
  const double sums = 2 * static_cast<double>(left.columns) + (scale == 1 ? 0 : 1);
  return {.flops = sums * count(workload, y), .launches = 1};
}

void Matmul::execute(ReferenceRun& run) const {
  const MatricesOf left(run.shape(a), heads, transpose_a);
  const MatricesOf right(run.shape(b), heads, transpose_b);
  const MatricesOf result(run.shape(y), heads, false);
  const double* of_a = run.at(a);
  const double* of_b = run.at(b);
  double* of_y = run.at(y);
#pragma omp parallel for schedule(static) if (run.size(y) * left.columns > 100000)
  for (std::int64_t i = 0; i < result.samples * heads; ++i) {
    const auto first = [&](const MatricesOf& of) {
      return i / heads * of.sample_step + i % heads * of.head_step;
    };
    for (std::int64_t m = 0; m < result.rows; ++m) {
      for (std::int64_t n = 0; n < result.columns; ++n) {
        const double* in_a = of_a + first(left) + m * left.row_step;
        const double* in_b = of_b + first(right) + n * right.column_step;
        double sum = 0;
        for (std::int64_t k = 0; k < left.columns; ++k) {
          sum += in_a[k * left.column_step] * in_b[k * right.row_step];
        }
        of_y[first(result) + m * result.row_step + n] = scale * sum;
      }
      alive();
    }
  }
}

}  // namespace crossover
