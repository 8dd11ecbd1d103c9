// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/update.h"

#include "../reference/run.h"
#include "crossover/alive.h"
#include "fit.h"

namespace crossover {

void Update::check(const Fit& fit) const {
  const auto of_its_rule = [&](const auto& by) {
    fit.require(states.size() == by.states.size(), "lists of different lengths");
    if (by.counts_steps) {
      fit.expect(step, {1}, Type::i32);
    }
  };
  std::visit(of_its_rule, rule);
  const auto check_list = [&](const std::vector<Id>& with, bool of_any_type) {
    fit.require(parameters.size() == with.size(), "lists of different lengths");
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Shape& shape = fit.at(parameters[i]).shape;
      fit.expect(parameters[i], shape);
      fit.expect(with[i], shape, of_any_type ? fit.number(with[i]) : Type::f32);
    }
  };
  check_list(gradients, true);
  for (const std::vector<Id>& list : states) {
    check_list(list, false);
  }
  fit.require(weight_decay.empty() || weight_decay.size() == parameters.size(),
              "lists of different lengths");
}

Cost Update::cost(const Workload& workload) const {
  const double flops = std::visit([](const auto& by) { return by.flops; }, rule);
  return {.flops = flops * count(workload, parameters),
          .launches = static_cast<std::int64_t>(parameters.size())};
}

void Update::execute(ReferenceRun& run) const {
  const int t = step == none ? 0 : static_cast<int>(++*run.at(step));
  const auto by_rule = [&](const auto& by) {
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const auto factors = by.template factors<double>(
          {.gradient_factor = gradient_factor, .weight_decay = decay_of(p), .step = t});
      double* const w = run.at(parameters[p]);
      const double* const g = run.at(gradients[p]);
      double* const m = by.states.size() > 0 ? run.at(states[0][p]) : w;
      double* const v = by.states.size() > 1 ? run.at(states[1][p]) : w;
      for_each_index(run.size(parameters[p]),
                     [&](std::int64_t i) { factors.update(w[i], g[i], m[i], v[i]); });
    }
  };
  std::visit(by_rule, rule);
}

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
