// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/gemm.h"

#include <utility>

#include "../reference/multiply.h"
#include "../reference/run.h"
#include "counting.h"
#include "fit.h"

namespace crossover {
namespace {

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

}  // namespace

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

}  // namespace crossover
