// SPDX-License-Identifier: Apache-2.0
// Launches that sum over ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "../kernels/operand.h"
#include "crossover/operation.h"

namespace crossover::cuda {

/// What an AllReduce becomes. In the second stream where it is `beside` what comes next.
struct SumLaunch {
  /// Tensors that lie one after another, and the padding between them: zeros on all ranks.
  struct Span {
    Operand first;
    std::int64_t count = 0;
  };
  std::vector<Span> spans;
  bool beside = false;
  static constexpr OpCategory category = OpCategory::communication;
};

/// What comes next waits for all sums in the second stream.
struct SumsEndLaunch {
  static constexpr OpCategory category = OpCategory::communication;
};

}  // namespace crossover::cuda
