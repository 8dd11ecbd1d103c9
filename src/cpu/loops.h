// SPDX-License-Identifier: Apache-2.0
// The passes over memory that oneDNN has no primitive for. All arrays are f32 and row-major.
#pragma once

#include <cstdint>

#include "crossover/elementwise.h"

namespace crossover::cpu {

void activate(int threads, Activation activation, const float* x, float* y, std::int64_t count);

/// dx = dy * derivative at y; dx may be dy.
void activate_grad(int threads, Activation activation, const float* y, const float* dy, float* dx,
                   std::int64_t count);

void add(int threads, const float* a, const float* b, float* y, std::int64_t count);

/// sums [columns] (+)= the sums of matrix [rows, columns] over its rows.
void column_sums(int threads, const float* matrix, std::int64_t rows, std::int64_t columns,
                 bool accumulate, float* sums);

/// See SoftmaxCrossEntropy in step.h; returns the loss.
float softmax_cross_entropy(int threads, const float* logits, const std::int32_t* labels,
                            std::int64_t batch, std::int64_t classes, float scale, float* dlogits);

void sgd(int threads, float* w, const float* g, std::int64_t count, float learning_rate);

void adamw(int threads, float* w, const float* g, float* m, float* v, std::int64_t count,
           const AdamWFactors<float>& factors);

/// Sets bytes to zero, each by the thread that will use it, so that memory lies near its core.
void clear(int threads, void* memory, std::int64_t bytes);

/// Lets the calling thread and `threads` workers treat denormal numbers as zero (x86: FTZ and DAZ):
/// they appear after thousands of epochs and cost a hundred cycles each. False where the processor
/// has no such mode.
bool flush_denormals(int threads);

}  // namespace crossover::cpu
