// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/activate.h"

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "crossover/elementwise.h"
#include "fit.h"

namespace crossover {

// ---- Activate

void Activate::check(const Fit& fit) const { fit.expect(y, fit.at(x).shape, fit.number(x)); }

Cost Activate::cost(const Workload& workload) const {
  return {.flops = flops(activation) * count(workload, y), .launches = 1};
}

void Activate::execute(ReferenceRun& run) const {
  const double* from = run.at(x);
  double* to = run.at(y);
  const std::int64_t size = run.size(x);
  for_each_index(size, [&](std::int64_t i) { to[i] = activate(activation, from[i]); });
}

// ---- ActivateGrad

void ActivateGrad::check(const Fit& fit) const {
  fit.expect(dy, fit.at(at).shape, fit.number(at));
  fit.expect(dx, fit.at(at).shape, fit.number(at));
}

Cost ActivateGrad::cost(const Workload& workload) const {
  return {.flops = derivative_flops(activation) * count(workload, dx), .launches = 1};
}

void ActivateGrad::execute(ReferenceRun& run) const {
  const double* point = run.at(at);
  const double* from = run.at(dy);
  double* to = run.at(dx);
  const std::int64_t size = run.size(at);
  for_each_index(size, [&](std::int64_t i) { to[i] = from[i] * derivative(activation, point[i]); });
}

}  // namespace crossover
