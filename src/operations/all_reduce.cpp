// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/all_reduce.h"

#include "../reference/run.h"
#include "counting.h"
#include "fit.h"

namespace crossover {

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
