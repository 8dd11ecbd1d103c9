// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/zero.h"

#include <algorithm>

#include "../reference/run.h"
#include "counting.h"
#include "fit.h"

namespace crossover {

void Zero::check(const Fit& fit) const {
  fit.require(!tensors.empty(), "no tensors to set to zero");
  for (const Id id : tensors) {
    fit.expect(id, fit.at(id).shape);
  }
}

Cost Zero::cost(const Workload& /*workload*/) const { return {.launches = 1}; }

void Zero::execute(ReferenceRun& run) const {
  for (const Id id : tensors) {
    std::fill_n(run.at(id), run.size(id), 0.0);
  }
}

}  // namespace crossover
