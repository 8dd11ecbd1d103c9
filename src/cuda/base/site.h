// SPDX-License-Identifier: Apache-2.0
// Where launches go, and what kernels find in the device block besides their operands.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../plan/launches/operand.h"
#include "crossover/functions.h"
#include "crossover/operations/update.h"

namespace crossover::cuda {

/// Which run of the order a step is in.
struct RunCounter {
  std::int64_t* run = nullptr;
  std::int64_t runs = 1;  ///< behind the last of which `run` is 0 again
};

/// What lies in device memory is the first network's.
struct Site {
  cudaStream_t stream = nullptr;
  Networks networks;
  RunCounter counter;
  float* row_losses = nullptr;             ///< [rows of the largest loss], scratch
  AdamWFactors<float>* factors = nullptr;  ///< of this update
};

/// cudaSuccess where the program holds code for the current device.
cudaError_t find_kernels();

}  // namespace crossover::cuda
