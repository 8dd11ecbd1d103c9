// SPDX-License-Identifier: Apache-2.0
// The passes that no library does. All arrays are row-major and in device memory; those without a
// C++ type are of the Type beside them. Each function puts its work into the stream and returns.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "crossover/elementwise.h"
#include "plan.h"

namespace crossover::cuda {

/// Casts from one type to another, which is f32 where the first is not.
struct CastSpan {
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t count = 0;
};
struct CastSpans {
  CastSpan span[max_spans];
  int count = 0;
};
void cast(cudaStream_t stream, Type from, Type to, const CastSpans& spans);

/// y may be x.
void activate(cudaStream_t stream, Activation activation, Type type, const void* x, void* y,
              std::int64_t count);

/// y [rows, columns] = activation(x + bias [columns]); bias and y are of the type, and y may be x.
void bias_activate(cudaStream_t stream, Activation activation, Type type, const float* x,
                   const void* bias, void* y, std::int64_t rows, std::int64_t columns);

/// dx = dy * derivative at y; dx may be dy.
void activate_grad(cudaStream_t stream, Activation activation, Type type, const void* y,
                   const void* dy, void* dx, std::int64_t count);

void add(cudaStream_t stream, Type type, const void* a, const void* b, void* y, std::int64_t count);

/// sums [columns] (+)= the sums of matrix [rows, columns] over its rows, always in the same order.
void column_sums(cudaStream_t stream, Type type, const void* matrix, std::int64_t rows,
                 std::int64_t columns, bool accumulate, float* sums);

/// See SoftmaxCrossEntropy in step.h.
struct LossArguments {
  const float* logits = nullptr;         // [rows, classes]
  const std::int32_t* labels = nullptr;  // [rows]
  void* dlogits = nullptr;               // [rows, classes]
  float* loss = nullptr;                 // [runs]; written at *run
  std::int64_t* run = nullptr;           // incremented behind that where `advance` is set
  float* row_losses = nullptr;           // [rows], scratch
  std::int64_t rows = 0, classes = 0;
  float factor = 0;  // scale / rows
  bool advance = false;
};
void softmax_cross_entropy(cudaStream_t stream, Type dlogits, const LossArguments& arguments);

void set_run(cudaStream_t stream, std::int64_t* run, std::int64_t value);
void advance_run(cudaStream_t stream, std::int64_t* run);

/// Arrays that an optimizer passes over together. m, v and keep are AdamW's.
struct UpdateSpan {
  float* w = nullptr;
  const float* g = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  std::int64_t count = 0;
  float keep = 1;  // 1 - learning rate * weight decay
};
struct UpdateSpans {
  UpdateSpan span[max_spans];
  int count = 0;
};
void sgd(cudaStream_t stream, const UpdateSpans& spans, float learning_rate);

/// ++*time, and the factors for that time.
void adamw_time(cudaStream_t stream, const AdamWConstants& constants, std::int32_t* time,
                AdamWFactors<float>* factors);
void adamw(cudaStream_t stream, const UpdateSpans& spans, const AdamWFactors<float>* factors);

/// cudaSuccess where the program holds code for the current device.
cudaError_t find_kernels();

}  // namespace crossover::cuda
