// SPDX-License-Identifier: Apache-2.0
// Dropout by the mask that every device draws.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "arrangement.h"
#include "crossover/tensor.h"

namespace crossover::cuda {

/// ++*counter.
void count_up(cudaStream_t stream, std::int32_t* counter);

/// y = x / (1 - probability) where the element is kept, else 0; y may be x.
void dropout(cudaStream_t stream, Type type, const void* x, void* y, std::int64_t count,
             const Arrangement& arrangement, double probability, std::int64_t seed,
             const std::int32_t* step);

}  // namespace crossover::cuda
