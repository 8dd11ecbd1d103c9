// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/elementwise_loss.h"

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "crossover/elementwise.h"
#include "fit.h"

namespace crossover {

void ElementwiseLoss::check(const Fit& fit) const {
  const Shape& shape = fit.at(logits).shape;
  fit.require(function != LossFunction::cross_entropy, "cross-entropy is another operation");
  fit.expect(logits, shape);
  fit.expect(targets, shape);
  fit.expect(dlogits, shape, fit.number(dlogits));
  fit.expect(loss, {static_cast<std::int64_t>(fit.workload().order.size())});
}

Cost ElementwiseLoss::cost(const Workload& workload) const {
  const double of_one = function == LossFunction::mse ? 4 : 14;
  return {.flops = of_one * count(workload, logits), .launches = 2};
}

void ElementwiseLoss::execute(ReferenceRun& run) const {
  const double* x = run.at(logits);
  const double* t = run.at(targets);
  double* gradient = run.at(dlogits);
  const std::int64_t size = run.size(logits);
  double sum = 0;
  for_each_index(size, [&](std::int64_t i) {
    const auto [value, slope] = elementwise_loss(function, x[i], t[i]);
    sum += value;
    gradient[i] = slope * scale / static_cast<double>(size);
  });
  run.at(loss)[run.position()] = sum / static_cast<double>(size);
}

}  // namespace crossover
