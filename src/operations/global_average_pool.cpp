// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/global_average_pool.h"

#include <algorithm>

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "crossover/places.h"
#include "fit.h"
#include "images.h"

namespace crossover {
namespace {

Shape means_of(const Fit& fit, Id id) {
  const Shape& shape = fit.at(id).shape;
  return without_places(Places::is_sequence(shape) ? shape : image(fit, id));
}

}  // namespace

// ---- GlobalAveragePool

void GlobalAveragePool::check(const Fit& fit) const {
  fit.expect(y, means_of(fit, x), fit.number(x));
}

Cost GlobalAveragePool::cost(const Workload& workload) const {
  return {.flops = count(workload, x), .launches = 1};
}

void GlobalAveragePool::execute(ReferenceRun& run) const {
  const Places of(run.shape(x));
  double* means = run.at(y);
  std::fill_n(means, run.size(y), 0.0);
  for_each_index(run.size(x), [&](std::int64_t i) { means[of.shared(i)] += run.at(x)[i]; });
  for_each_index(run.size(y), [&](std::int64_t i) { means[i] /= static_cast<double>(of.count); });
}

// ---- GlobalAveragePoolGrad

void GlobalAveragePoolGrad::check(const Fit& fit) const {
  fit.expect(dy, means_of(fit, dx), fit.number(dx));
}

Cost GlobalAveragePoolGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dx), .launches = 1};
}

void GlobalAveragePoolGrad::execute(ReferenceRun& run) const {
  const Places of(run.shape(dx));
  for_each_index(run.size(dx), [&](std::int64_t i) {
    run.at(dx)[i] = run.at(dy)[of.shared(i)] / static_cast<double>(of.count);
  });
}

}  // namespace crossover
