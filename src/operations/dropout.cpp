// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/dropout.h"

#include "../reference/run.h"
#include "counting.h"
#include "crossover/random.h"
#include "fit.h"

namespace crossover {
namespace {

template <class Op>
void check_mask(const Fit& fit, const Op& op) {
  fit.require(op.probability >= 0 && op.probability < 1, "drops with a probability in [0, 1)");
  fit.require(op.draw >= 0 && op.draw < op.draws, "draws one of the masks of a step");
}

/// to = from where an element is kept, times what keeps the mean.
template <class Op>
void drop(const Op& op, const double* from, double* to, std::int64_t count, double step) {
  const auto time = static_cast<std::int32_t>(step) + static_cast<std::int32_t>(offset_of_mask(op));
#pragma omp parallel for schedule(static) if (count > 100000)
  for (std::int64_t i = 0; i < count; ++i) {
    const bool kept =
        dropout_uniform(op.seed, time, static_cast<std::uint64_t>(i)) >= op.probability;
    to[i] = kept ? from[i] / (1 - op.probability) : 0;
  }
}

}  // namespace

// ---- Dropout

void Dropout::check(const Fit& fit) const {
  check_mask(fit, *this);
  fit.expect(y, fit.at(x).shape, fit.number(x));
  fit.expect(step, {1}, Type::i32);
}

/// The generator's arithmetic is on integers, and counts for nothing.
Cost Dropout::cost(const Workload& workload) const {
  return {.flops = count(workload, y), .launches = 1};
}

void Dropout::execute(ReferenceRun& run) const {
  *run.at(step) += static_cast<double>(draws);
  drop(*this, run.at(x), run.at(y), run.size(y), *run.at(step));
}

// ---- DropoutGrad

void DropoutGrad::check(const Fit& fit) const {
  check_mask(fit, *this);
  fit.expect(dx, fit.at(dy).shape, fit.number(dy));
  fit.expect(step, {1}, Type::i32);
}

Cost DropoutGrad::cost(const Workload& workload) const {
  return {.flops = count(workload, dx), .launches = 1};
}

void DropoutGrad::execute(ReferenceRun& run) const {
  drop(*this, run.at(dy), run.at(dx), run.size(dx), *run.at(step));
}

}  // namespace crossover
