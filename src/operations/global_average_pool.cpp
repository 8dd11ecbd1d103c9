// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/global_average_pool.h"

#include <stdexcept>

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

std::vector<OpProduct> GlobalAveragePool::products(const Workload& /*workload*/) const {
  return {};
}

void GlobalAveragePool::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no GlobalAveragePool yet");
}

// ---- GlobalAveragePoolGrad

void GlobalAveragePoolGrad::check(const Fit& fit) const {
  const Shape& images = image(fit, dx);
  fit.expect(dy, {images[0], images[1]}, fit.number(dx));
}

Cost GlobalAveragePoolGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dx), .launches = 1};
}

std::vector<OpProduct> GlobalAveragePoolGrad::products(const Workload& /*workload*/) const {
  return {};
}

void GlobalAveragePoolGrad::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no GlobalAveragePoolGrad yet");
}

}  // namespace crossover
