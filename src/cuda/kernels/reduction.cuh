// SPDX-License-Identifier: Apache-2.0
// Sums, taken in a fixed order.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "crossover/tensor.h"

namespace crossover::cuda {

/// sums [parts, columns] (+)= the sums of matrix [rows, columns] over each of `parts` equal parts
/// of its rows, always in the same order. Only the sums of one part may accumulate.
void column_sums(cudaStream_t stream, Type type, const void* matrix, std::int64_t rows,
                 std::int64_t columns, std::int64_t parts, bool accumulate, float* sums);

}  // namespace crossover::cuda
