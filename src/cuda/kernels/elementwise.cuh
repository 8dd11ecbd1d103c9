// SPDX-License-Identifier: Apache-2.0
// Passes over whole tensors, element by element. Here as in the other families: arrays are
// row-major and in device memory, those without a C++ type are of the Type beside them, and each
// function puts its work into the stream and returns.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "crossover/elementwise.h"
#include "crossover/step.h"

namespace crossover::cuda {

/// y may be x.
void activate(cudaStream_t stream, Activation activation, Type type, const void* x, void* y,
              std::int64_t count);

/// y [rows, columns] = activation(x + bias [columns]); bias and y are of the type, and y may be x.
void bias_activate(cudaStream_t stream, Activation activation, Type type, const float* x,
                   const void* bias, void* y, std::int64_t rows, std::int64_t columns);

/// y [rows, channels] = activation(y + bias [channels]), where bias is f32 whatever y is.
void channel_bias(cudaStream_t stream, Activation activation, Type type, const float* bias, void* y,
                  std::int64_t rows, std::int64_t channels);

/// dx = dy * derivative at y; dx may be dy.
void activate_grad(cudaStream_t stream, Activation activation, Type type, const void* y,
                   const void* dy, void* dx, std::int64_t count);

void add(cudaStream_t stream, Type type, const void* a, const void* b, void* y, std::int64_t count);

/// cudaSuccess where the program holds code for the current device.
cudaError_t find_kernels();

}  // namespace crossover::cuda
