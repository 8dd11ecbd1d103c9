// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/dropout.h"

#include "../reference/run.h"
#include "counting.h"
#include "crossover/random.h"
#include "fit.h"

namespace crossover {
namespace {

void check_probability(const Fit& fit, double probability) {
  fit.require(probability >= 0 && probability < 1, "drops with a probability in [0, 1)");
}

/// to = from where an element is kept, times what keeps the mean.
void drop(const double* from, double* to, std::int64_t count, double probability, std::int64_t seed,
          double step) {
  const auto time = static_cast<std::int32_t>(step);
#pragma omp parallel for schedule(static) if (count > 100000)
  for (std::int64_t i = 0; i < count; ++i) {
    const bool kept = dropout_uniform(seed, time, static_cast<std::uint64_t>(i)) >= probability;
    to[i] = kept ? from[i] / (1 - probability) : 0;
  }
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

void Dropout::execute(ReferenceRun& run) const {
  drop(run.at(x), run.at(y), run.size(y), probability, seed, ++*run.at(step));
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

void DropoutGrad::execute(ReferenceRun& run) const {
  drop(run.at(dy), run.at(dx), run.size(dx), probability, seed, *run.at(step));
}

}  // namespace crossover
