// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/update.h"

#include "../reference/run.h"
#include "counting.h"
#include "crossover/alive.h"
#include "crossover/elementwise.h"
#include "fit.h"

namespace crossover {

// ---- SGD

void Sgd::check(const Fit& fit) const { check_update(fit, parameters, gradients, true); }

Cost Sgd::cost(const Workload& workload) const {
  return {.flops = 2 * count(workload, parameters),
          .launches = static_cast<std::int64_t>(parameters.size())};
}

void Sgd::execute(ReferenceRun& run) const {
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    double* w = run.at(parameters[p]);
    const double* g = run.at(gradients[p]);
    const std::int64_t size = run.size(parameters[p]);
    for_each_index(
        size, [&](std::int64_t i) { w[i] = sgd(w[i], gradient_factor * g[i], learning_rate); });
  }
}

// ---- Momentum

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

// ---- AdamW

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

// ---- All reduce

void AllReduce::check(const Fit& fit) const {
  fit.require(!tensors.empty(), "no tensors to sum");
  fit.require(ranks > 0, "a number of ranks below one");
  for (const Id id : tensors) {
    fit.expect(id, fit.at(id).shape);
  }
}

/// The additions of one rank, where each sums a part of the values and then has those of the others
/// (Patarasuk and Yuan 2009, Bandwidth optimal all-reduce algorithms for clusters of workstations).
Cost AllReduce::cost(const Workload& workload) const {
  const auto of = static_cast<double>(ranks);
  return {.flops = count(workload, tensors) * (of - 1) / of, .launches = 1};
}

void AllReduce::execute(ReferenceRun& run) const {
  for (const Id id : tensors) {
    run.sum_over_ranks(id);
  }
}

}  // namespace crossover
