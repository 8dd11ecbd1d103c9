// SPDX-License-Identifier: Apache-2.0
// Windows over images that lie channels-last. The gradients gather: a thread owns an element of dx
// and looks at the windows that hold it, so nothing is added twice and every run sums alike. Fewer
// than 2^31 elements.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "crossover/elementwise.h"
#include "launch.h"

namespace crossover::cuda {

void max_pool(cudaStream_t stream, Type type, const Pooling& pooling, const void* x, void* y,
              std::uint8_t* where);

/// y may be null where the activation is identity.
void max_pool_grad(cudaStream_t stream, Type type, const Pooling& pooling, Activation x_activation,
                   const void* y, const std::uint8_t* where, const void* dy, void* dx);

void average_pool(cudaStream_t stream, Type type, const Pooling& pooling, const void* x, void* y);

/// x may be null where the activation is identity.
void average_pool_grad(cudaStream_t stream, Type type, const Pooling& pooling,
                       Activation x_activation, const void* x, const void* dy, void* dx);

/// y [batch, channels] = the mean of x [batch, pixels, channels] over pixels.
void global_average_pool(cudaStream_t stream, Type type, const void* x, void* y, std::int64_t batch,
                         std::int64_t pixels, std::int64_t channels);

/// dx [batch, pixels, channels] = dy [batch, channels] / pixels.
void global_average_pool_grad(cudaStream_t stream, Type type, const void* dy, void* dx,
                              std::int64_t batch, std::int64_t pixels, std::int64_t channels);

}  // namespace crossover::cuda
