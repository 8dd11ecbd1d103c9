// SPDX-License-Identifier: Apache-2.0
// What the kernel of a product or a convolution does where its library's manual leaves it open,
// found by running it on operands that tell. Kernels differ from shape to shape, so each form is
// asked by itself.
#pragma once

#include "crossover/backend.h"
#include "library.h"

namespace crossover::cuda {

/// What becomes of a factor that tf32 does not hold. Writes to all operands, and waits.
Tf32Factors measure_tf32_factors(const Product& product, const CalledProduct& of,
                                 const Workspace& workspace, cudaStream_t stream);
Tf32Factors measure_tf32_factors(const PreparedConvolution& convolution,
                                 const CalledConvolution& of, const Workspace& workspace,
                                 cudaStream_t stream);

/// Whether the mask that the product writes (relu_mask, relu_mask_bias) lets a gradient pass where
/// ReLU's input is exactly 0. Writes to all operands, and waits.
bool measure_mask_at_zero(const Product& product, const CalledProduct& of,
                          const Workspace& workspace, cudaStream_t stream);

}  // namespace crossover::cuda
