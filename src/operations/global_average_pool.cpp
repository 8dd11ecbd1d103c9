// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/global_average_pool.h"

#include <algorithm>
#include <numeric>

#include "../reference/run.h"
#include "counting.h"
#include "fit.h"
#include "images.h"

namespace crossover {

// ---- GlobalAveragePool

void GlobalAveragePool::check(const Fit& fit) const {
  const Shape& images = image(fit, x);
  fit.expect(y, {images[0], images[1]}, fit.number(x));
}

Cost GlobalAveragePool::cost(const Workload& workload) const {
  return {.flops = count(workload, x), .launches = 1};
}

void GlobalAveragePool::execute(ReferenceRun& run) const {
  const std::int64_t pixels = run.shape(x)[2] * run.shape(x)[3];
  const double* from = run.at(x);
  double* means = run.at(y);
  for (std::int64_t i = 0; i < run.size(y); ++i) {
    means[i] = std::accumulate(from + i * pixels, from + (i + 1) * pixels, 0.0) /
               static_cast<double>(pixels);
  }
}

// ---- GlobalAveragePoolGrad

void GlobalAveragePoolGrad::check(const Fit& fit) const {
  const Shape& images = image(fit, dx);
  fit.expect(dy, {images[0], images[1]}, fit.number(dx));
}

Cost GlobalAveragePoolGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dx), .launches = 1};
}

void GlobalAveragePoolGrad::execute(ReferenceRun& run) const {
  const std::int64_t pixels = run.shape(dx)[2] * run.shape(dx)[3];
  const double* from = run.at(dy);
  double* to = run.at(dx);
  for (std::int64_t i = 0; i < run.size(dy); ++i) {
    std::fill_n(to + i * pixels, pixels, from[i] / static_cast<double>(pixels));
  }
}

}  // namespace crossover
