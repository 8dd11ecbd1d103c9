// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/dense.h"

#include <algorithm>
#include <utility>

#include "../reference/products.h"
#include "../reference/run.h"
#include "crossover/alive.h"
#include "crossover/functions.h"
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

/// The extents of op(id), a matrix.
Shape factor(const Fit& fit, Id id, bool transposed) {
  Shape shape = fit.at(id).shape;
  fit.require(shape.size() == 2,
              "'" + fit.at(id).name + "' " + to_string(shape) + " is not a matrix");
  if (transposed) {
    std::swap(shape[0], shape[1]);
  }
  return shape;
}

ProductSize size_of(const Workload& workload, const Gemm& op) {
  return {.m = workload[op.c].shape[0],
          .n = workload[op.c].shape[1],
          .k = workload[op.a].shape[op.transpose_a ? 0 : 1],
          .transpose_a = op.transpose_a,
          .transpose_b = op.transpose_b,
          .type = workload[op.a].type};
}

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

void Linear::check(const Fit& fit) const {
  const Shape result = linear_result(fit, x, w);
  const Type type = fit.number(x);
  fit.expect(w, fit.at(w).shape, type);
  const Type result_type = fit.number_or_f32(y, type);
  fit.expect(y, result, result_type);
  fit.expect_if_any(bias, {fit.at(w).shape[0]}, result_type);
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

void LinearGrad::check(const Fit& fit) const {
  const Shape result = linear_result(fit, x, w);
  const Type type = fit.number(x);
  fit.expect(w, fit.at(w).shape, type);
  fit.expect(dy, result, type);
  fit.expect_if_any(dw, fit.at(w).shape);
  fit.expect_if_any(dbias, {fit.at(w).shape[0]});
  fit.expect_if_any(dx, fit.at(x).shape, type);
  fit.expect_derivative_from_result(x_activation);
}

Cost LinearGrad::cost(const Workload& workload) const {
  Cost sum;
  if (dw != none) {
    sum += {.flops = product_flops(workload, x, w), .launches = 1};
  }
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
  if (dw != none) {
    all.push_back(
        {{.m = weights[0], .n = weights[1], .k = rows, .transpose_a = true, .type = type}, "dw"});
  }
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
      to[i] = times_derivative_from_result(x_activation, to[i], result[i]);
    });
  }
  if (dw != none) {
    multiply(out, in, rows, {from, 1, out}, {run.at(x), in, 1}, run.at(dw), accumulate);
  }
  if (dbias != none) {
    double* sums = run.at(dbias);
    if (!accumulate) {
      std::fill_n(sums, out, 0.0);
    }
    for_each_index(rows * out, [&](std::int64_t i) { sums[i % out] += from[i]; });
  }
}

void Gemm::check(const Fit& fit) const {
  const Shape left = factor(fit, a, transpose_a);
  const Shape right = factor(fit, b, transpose_b);
  fit.require(left[1] == right[0], "'" + fit.at(a).name + "' as " + to_string(left) +
                                       " does not fit '" + fit.at(b).name + "' as " +
                                       to_string(right));
  const Type type = fit.number(a);
  fit.expect(b, fit.at(b).shape, type);
  fit.expect(c, {left[0], right[1]}, fit.number_or_f32(c, type));
  fit.require(c != a && c != b, "the result '" + fit.at(c).name + "' is also a factor");
}

Cost Gemm::cost(const Workload& workload) const {
  const auto k = static_cast<double>(size_of(workload, *this).k);
  return {.flops = 2 * count(workload, c) * k, .launches = 1};
}

std::vector<OpProduct> Gemm::products(const Workload& workload) const {
  return {{size_of(workload, *this)}};
}

void Gemm::execute(ReferenceRun& run) const {
  const Shape& left = run.shape(a);
  const Shape& right = run.shape(b);
  const Shape& result = run.shape(c);
  multiply(result[0], result[1], left[transpose_a ? 0 : 1],
           transpose_a ? MatrixView{run.at(a), 1, left[1]} : MatrixView{run.at(a), left[1], 1},
           transpose_b ? MatrixView{run.at(b), 1, right[1]} : MatrixView{run.at(b), right[1], 1},
           run.at(c), false);
}

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
