// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/add.h"

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "fit.h"

namespace crossover {

void Add::check(const Fit& fit) const {
  fit.expect(b, fit.at(a).shape, fit.number(a));
  fit.expect(y, fit.at(a).shape, fit.number(a));
}

Cost Add::cost(const Workload& workload) const {
  return {.flops = count(workload, y), .launches = 1};
}

void Add::execute(ReferenceRun& run) const {
  const double* left = run.at(a);
  const double* right = run.at(b);
  double* sum = run.at(y);
  const std::int64_t size = run.size(y);
  for_each_index(size, [&](std::int64_t i) { sum[i] = left[i] + right[i]; });
}

}  // namespace crossover
