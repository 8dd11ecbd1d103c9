// SPDX-License-Identifier: Apache-2.0
// What updates parameters from their gradients.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "crossover/elementwise.h"
#include "launch.h"

namespace crossover::cuda {

/// Arrays that an optimizer passes over together, each at a multiple of 16 bytes. m, v and keep are
/// AdamW's.
struct UpdateSpan {
  float* w = nullptr;
  const float* g = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  void* copy = nullptr;  // of w in 16 bits, at a multiple of 8 bytes; or there is none
  std::int64_t count = 0;
  float keep = 1;  // 1 - learning rate * weight decay
};
struct UpdateSpans {
  UpdateSpan span[max_spans];
  int count = 0;
  Type copies = Type::f32;  // of 16 bits where a span has one
};
void sgd(cudaStream_t stream, const UpdateSpans& spans, float learning_rate);

/// ++*time, and the factors for that time.
void adamw_time(cudaStream_t stream, const AdamWConstants& constants, std::int32_t* time,
                AdamWFactors<float>* factors);
void adamw(cudaStream_t stream, const UpdateSpans& spans, const AdamWFactors<float>* factors);

}  // namespace crossover::cuda
