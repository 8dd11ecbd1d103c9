// SPDX-License-Identifier: Apache-2.0
// Where the kernel that trains a whole order keeps what it works with.
#pragma once

#include <cstdint>
#include <vector>

#include "../kernels/persistent_plan.h"

namespace crossover::cuda {

struct PersistentLayout {
  std::vector<OnChipLayer> layers;
  OnChipPlaces places;
  std::int64_t bytes = 0;
};

/// Activations and their gradients share memory where no phase needs both.
PersistentLayout lay_out(const std::vector<DenseLayer>& layers, std::int64_t batch, bool adamw,
                         const std::vector<std::vector<Job>>& phases);

}  // namespace crossover::cuda
