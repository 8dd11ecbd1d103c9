// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/loss.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../reference/run.h"
#include "crossover/alive.h"
#include "crossover/functions.h"
#include "fit.h"

namespace crossover {

void SoftmaxCrossEntropy::check(const Fit& fit) const {
  const Shape& shape = fit.at(logits).shape;
  fit.require(shape.size() == 2 || shape.size() == 3,
              "the logits are neither [batch, classes] nor [time, batch, classes]");
  fit.expect(logits, shape);
  fit.expect(dlogits, shape, fit.number(dlogits));
  fit.expect(labels, shape.size() == 2 ? Shape{shape[0]} : Shape{shape[1], shape[0]}, Type::i32);
  fit.expect(loss, {static_cast<std::int64_t>(fit.workload().order.size())});
}

Cost SoftmaxCrossEntropy::cost(const Workload& workload) const {
  return {.flops = 5 * count(workload, logits) + 2 * count(workload, labels), .launches = 2};
}

void SoftmaxCrossEntropy::execute(ReferenceRun& run) const {
  const Shape& shape = run.shape(logits);
  const std::int64_t time = shape.size() == 2 ? 1 : shape[0];
  const std::int64_t positions = leading(shape);
  const std::int64_t batch = positions / time;
  const std::int64_t classes = shape.back();
  std::vector<double> losses(static_cast<std::size_t>(positions));
#pragma omp parallel for schedule(static) if (positions * classes > 10000)
  for (std::int64_t i = 0; i < positions; ++i) {
    const double* row = run.at(logits) + i * classes;
    double* gradient = run.at(dlogits) + i * classes;
    const std::int64_t of_label = i % batch * time + i / batch;
    const auto label = static_cast<std::int64_t>(run.at(labels)[of_label]);
    const double largest = *std::max_element(row, row + classes);
    double others = 0;  // than the label: nothing cancels where the network is sure and right
    for (std::int64_t c = 0; c < classes; ++c) {
      others += c == label ? 0 : std::exp(row[c] - largest);
    }
    const double own = std::exp(row[label] - largest);  // 1 where the label leads
    losses[static_cast<std::size_t>(i)] = largest - row[label] + std::log1p(others + (own - 1));
    for (std::int64_t c = 0; c < classes; ++c) {
      const double slope = c == label ? -others : std::exp(row[c] - largest);
      gradient[c] = slope / (others + own) * scale / static_cast<double>(positions);
    }
    alive();
  }
  run.at(loss)[run.position()] =
      std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(positions);
}

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
