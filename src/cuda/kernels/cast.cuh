// SPDX-License-Identifier: Apache-2.0
// From one floating-point type to another, or as they are.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "crossover/tensor.h"
#include "launch.h"

namespace crossover::cuda {

/// Casts from one type to another, which is f32 or the same where the first is not f32.
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

}  // namespace crossover::cuda
