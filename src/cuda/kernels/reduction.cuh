// SPDX-License-Identifier: Apache-2.0
// Sums, taken in a fixed order.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "crossover/tensor.h"

namespace crossover::cuda {

/// sums [columns] (+)= the sums of matrix [rows, columns] over its rows, always in the same order.
void column_sums(cudaStream_t stream, Type type, const void* matrix, std::int64_t rows,
                 std::int64_t columns, bool accumulate, float* sums);

}  // namespace crossover::cuda
