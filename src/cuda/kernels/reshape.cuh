// SPDX-License-Identifier: Apache-2.0
// The same elements in the same order, arranged in another way.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "arrangement.h"

namespace crossover::cuda {

/// Elements of 2 or 4 bytes.
void reshape(cudaStream_t stream, std::int64_t element_bytes, const void* x, void* y,
             std::int64_t count, const Arrangement& from, const Arrangement& to);

/// count f32 become 0.
void zero(cudaStream_t stream, float* to, std::int64_t count);

}  // namespace crossover::cuda
