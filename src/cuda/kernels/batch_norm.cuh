// SPDX-License-Identifier: Apache-2.0
// Batch normalization of images that lie channels-last, as matrices [rows, channels]. Each way
// takes two launches: sums of parts of the rows, then these sums' sums and all that follows from
// them, in one pass. Arrays of parameters, statistics and partial sums are f32 [.., channels].
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "crossover/elementwise.h"

namespace crossover::cuda {

struct BatchNormArguments {
  const void* x = nullptr;
  const float* scale = nullptr;
  const float* shift = nullptr;
  const void* addend = nullptr;  // or none
  void* y = nullptr;
  float* mean = nullptr;
  float* inverse_deviation = nullptr;
  float* partial = nullptr;  // [chunks, 2, channels]: means, and sums of squared distances to them
  std::int64_t rows = 0, channels = 0, chunks = 1;
  float epsilon = 0;
  Activation activation = Activation::identity;
};
/// Writes `partial`, by the method of Welford (1962), which no mean that is large against the
/// deviation harms.
void batch_norm_statistics(cudaStream_t stream, Type type, const BatchNormArguments& arguments);
/// Joins them (Chan, Golub, LeVeque 1979); writes mean, inverse_deviation and y.
void batch_norm(cudaStream_t stream, Type type, const BatchNormArguments& arguments);

struct BatchNormGradArguments {
  const void* x = nullptr;
  const float* scale = nullptr;
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  const void* y = nullptr;  // or none, where the activation is identity
  const void* dy = nullptr;
  const void* dy_more = nullptr;  // or none
  void* dx = nullptr;
  float* dscale = nullptr;
  float* dshift = nullptr;
  void* daddend = nullptr;   // or none
  float* partial = nullptr;  // [chunks, 2, channels]: sums of dz, and of dz x'
  std::int64_t rows = 0, channels = 0, chunks = 1;
  Activation activation = Activation::identity;
};
void batch_norm_grad_sums(cudaStream_t stream, Type type, const BatchNormGradArguments& arguments);
void batch_norm_grad(cudaStream_t stream, Type type, const BatchNormGradArguments& arguments);

}  // namespace crossover::cuda
