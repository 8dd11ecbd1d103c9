// SPDX-License-Identifier: Apache-2.0
// What src/cuda/kernels/device/convert.cuh takes of CUDA's header of that name, in the host's
// arithmetic.
#pragma once

#include "crossover/float16.h"
#include "cuda_host/kernel.h"  // its names of functions, as with CUDA

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): these are CUDA's names
struct __nv_bfloat16 {
  unsigned short bits;
};

inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline float __bfloat162float(__nv_bfloat16 x) {
  return crossover::widened(crossover::Bf16{x.bits});
}
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  return {crossover::narrowed<crossover::Bf16>(x).bits};
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
