// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/momentum.h"

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "crossover/elementwise.h"
#include "fit.h"
#include "update.h"

namespace crossover {

void Momentum::check(const Fit& fit) const {
  check_update(fit, parameters, gradients, true);
  check_update(fit, parameters, velocities);
}

Cost Momentum::cost(const Workload& workload) const {
  return {.flops = 4 * count(workload, parameters),
          .launches = static_cast<std::int64_t>(parameters.size())};
}

void Momentum::execute(ReferenceRun& run) const {
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    double* w = run.at(parameters[p]);
    const double* g = run.at(gradients[p]);
    double* velocity = run.at(velocities[p]);
    const std::int64_t size = run.size(parameters[p]);
    for_each_index(size, [&](std::int64_t i) {
      crossover::momentum(w[i], gradient_factor * g[i], velocity[i], learning_rate, momentum);
    });
  }
}

}  // namespace crossover
