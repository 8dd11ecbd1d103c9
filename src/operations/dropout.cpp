// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/dropout.h"

#include <stdexcept>

#include "../reference/run.h"
#include "counting.h"
#include "fit.h"

namespace crossover {
namespace {

void check_probability(const Fit& fit, double probability) {
  fit.require(probability >= 0 && probability < 1, "drops with a probability in [0, 1)");
}

}  // namespace

// ---- Dropout

void Dropout::check(const Fit& fit) const {
  check_probability(fit, probability);
  fit.expect(y, fit.at(x).shape, fit.number(x));
  fit.expect(step, {1}, Type::i32);
}

/// The generator's arithmetic is on integers, and counts for nothing.
Cost Dropout::cost(const Workload& workload) const {
  return {.flops = count(workload, y), .launches = 1};
}

std::vector<OpProduct> Dropout::products(const Workload& /*workload*/) const { return {}; }

void Dropout::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no Dropout yet");
}

// ---- DropoutGrad

void DropoutGrad::check(const Fit& fit) const {
  check_probability(fit, probability);
  fit.expect(dx, fit.at(dy).shape, fit.number(dy));
  fit.expect(step, {1}, Type::i32);
}

Cost DropoutGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dx), .launches = 1};
}

std::vector<OpProduct> DropoutGrad::products(const Workload& /*workload*/) const { return {}; }

void DropoutGrad::execute(ReferenceRun& /*run*/) const {
  throw std::logic_error("the reference has no DropoutGrad yet");
}

}  // namespace crossover
