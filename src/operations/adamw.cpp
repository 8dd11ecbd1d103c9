// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/adamw.h"

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "crossover/elementwise.h"
#include "fit.h"
#include "update.h"

namespace crossover {

void AdamW::check(const Fit& fit) const {
  check_update(fit, parameters, gradients, true);
  check_update(fit, parameters, m);
  check_update(fit, parameters, v);
  fit.require(weight_decay.size() == parameters.size(), "lists of different lengths");
  fit.expect(step, {1}, Type::i32);
}

Cost AdamW::cost(const Workload& workload) const {
  return {.flops = 14 * count(workload, parameters),
          .launches = static_cast<std::int64_t>(parameters.size())};
}

void AdamW::execute(ReferenceRun& run) const {
  const double t = ++*run.at(step);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto factors = adamw_factors<double>(*this, weight_decay[p], static_cast<int>(t));
    double* w = run.at(parameters[p]);
    const double* g = run.at(gradients[p]);
    double* first = run.at(m[p]);
    double* second = run.at(v[p]);
    const std::int64_t size = run.size(parameters[p]);
    for_each_index(size, [&](std::int64_t i) { adamw(w[i], g[i], first[i], second[i], factors); });
  }
}

}  // namespace crossover
