// SPDX-License-Identifier: Apache-2.0
// The sum of gradients over the ranks that share a batch.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/operation.h"

namespace crossover {

/// Each of the tensors, all f32, becomes its sum over all ranks (MPI 4.0, 6.9.6 MPI_Allreduce).
/// What a rank adds is weighted already: the `scale` of its loss is that of its rows in the whole
/// batch.
struct AllReduce {
  std::vector<Id> tensors;
  std::int64_t ranks = 1;

  static constexpr const char* name = "AllReduce";
  static constexpr OpCategory category = OpCategory::communication;
  template <class See>
  void describe(See& see) const {
    see.reads("tensors", tensors);
    see.writes("tensors", tensors);
    see.value("ranks", ranks);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
