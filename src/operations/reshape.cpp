// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/reshape.h"

#include <algorithm>

#include "../reference/run.h"
#include "counting.h"
#include "fit.h"

namespace crossover {

void Reshape::check(const Fit& fit) const {
  fit.require(elements(fit.at(x).shape) == elements(fit.at(y).shape),
              "'" + fit.at(x).name + "' " + to_string(fit.at(x).shape) + " and '" + fit.at(y).name +
                  "' " + to_string(fit.at(y).shape) + " have different numbers of elements");
  fit.expect(y, fit.at(y).shape, fit.number(x));
}

Cost Reshape::cost(const Workload& /*workload*/) const { return {.launches = 1}; }

void Reshape::execute(ReferenceRun& run) const { std::copy_n(run.at(x), run.size(x), run.at(y)); }

}  // namespace crossover
