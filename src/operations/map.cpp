// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/map.h"

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "fit.h"

namespace crossover {

// ---- Map

void Map::check(const Fit& fit) const { fit.expect(y, fit.at(x).shape, fit.number(x)); }

Cost Map::cost(const Workload& workload) const {
  const double flops = std::visit([](const auto& of) { return of.flops; }, function);
  return {.flops = flops * count(workload, y), .launches = 1};
}

void Map::execute(ReferenceRun& run) const {
  const double* from = run.at(x);
  double* to = run.at(y);
  std::visit(
      [&](const auto& of) {
        for_each_index(run.size(x),
                       [&](std::int64_t i) { to[i] = of.value(ScalarMaths<double>(), from[i]); });
      },
      function);
}

// ---- MapGrad

void MapGrad::check(const Fit& fit) const {
  fit.expect(dy, fit.at(x).shape, fit.number(x));
  fit.expect(dx, fit.at(x).shape, fit.number(x));
}

Cost MapGrad::cost(const Workload& workload) const {
  const double flops = std::visit([](const auto& of) { return of.derivative_flops; }, function);
  return {.flops = flops * count(workload, dx), .launches = 1};
}

void MapGrad::execute(ReferenceRun& run) const {
  const double* point = run.at(x);
  const double* from = run.at(dy);
  double* to = run.at(dx);
  std::visit(
      [&](const auto& of) {
        for_each_index(run.size(x), [&](std::int64_t i) {
          to[i] = from[i] * of.derivative(ScalarMaths<double>(), point[i]);
        });
      },
      function);
}

}  // namespace crossover
