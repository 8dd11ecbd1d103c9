// SPDX-License-Identifier: Apache-2.0
// Rows of a table by tokens [batch, time], and the table's gradient.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "crossover/tensor.h"

namespace crossover::cuda {

/// y [time, batch, width] from table [.., width].
void embedding(cudaStream_t stream, Type type, const std::int32_t* tokens, const void* table,
               void* y, std::int64_t batch, std::int64_t time, std::int64_t width);

/// Row r of dtable f32 [.., width] = the sum of dy [time, batch, width] where the token is r, in
/// the order of the tokens; rows without one are left alone. A block for each position: those that
/// are not the first of their token end at once, so no two blocks write one row and nothing is
/// atomic. They read the tokens over and over, batch * time of them each, which the caches hold: of
/// 4096, 16 KiB.
void embedding_grad(cudaStream_t stream, Type type, const std::int32_t* tokens, const void* dy,
                    float* dtable, std::int64_t batch, std::int64_t time, std::int64_t width);

}  // namespace crossover::cuda
