// SPDX-License-Identifier: Apache-2.0
// The passes over memory that oneDNN has no primitive for. All arrays are row-major; T is
// float, Bf16 or F16. What is stored in 16 bits is calculated with in f32.
#pragma once

#include <cstdint>

#include "crossover/elementwise.h"
#include "crossover/float16.h"

namespace crossover::cpu {

template <class From, class To>
void cast(int threads, const From* x, To* y, std::int64_t count);

template <class T>
void activate(int threads, Activation activation, const T* x, T* y, std::int64_t count);

/// dx = dy * derivative at y; dx may be dy.
template <class T>
void activate_grad(int threads, Activation activation, const T* y, const T* dy, T* dx,
                   std::int64_t count);

template <class T>
void add(int threads, const T* a, const T* b, T* y, std::int64_t count);

/// sums [columns] (+)= the sums of matrix [rows, columns] over its rows.
template <class T>
void column_sums(int threads, const T* matrix, std::int64_t rows, std::int64_t columns,
                 bool accumulate, float* sums);

/// See SoftmaxCrossEntropy in operations/; returns the loss.
template <class T>
float softmax_cross_entropy(int threads, const float* logits, const std::int32_t* labels,
                            std::int64_t batch, std::int64_t classes, float scale, T* dlogits);

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
