// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace crossover::cuda {

/// The order of runs as kernels read it.
struct OrderedRun {
  std::int64_t first_row = 0;
  std::int64_t step = 0;
};

}  // namespace crossover::cuda
