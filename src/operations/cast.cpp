// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/cast.h"

#include <algorithm>

#include "../reference/run.h"
#include "counting.h"
#include "fit.h"

namespace crossover {

void Cast::check(const Fit& fit) const {
  const Type from = fit.number(x);
  const Type to = fit.number(y);
  fit.expect(y, fit.at(x).shape, to);
  fit.require(from != to && (from == Type::f32 || to == Type::f32),
              "from '" + fit.at(x).name + "' to '" + fit.at(y).name + "', from " + to_string(from) +
                  " to " + to_string(to) + ": one of two different types must be f32");
}

Cost Cast::cost(const Workload& /*workload*/) const { return {.launches = 1}; }

void Cast::execute(ReferenceRun& run) const { std::copy_n(run.at(x), run.size(x), run.at(y)); }

}  // namespace crossover
