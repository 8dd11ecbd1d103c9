// SPDX-License-Identifier: Apache-2.0
// The 16-bit types in kernels, by the GPU's own conversions: float16.h says what they do. Beside
// launch.cuh, because the host has none of them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "crossover/float16.h"

namespace crossover::cuda {

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(Bf16 x) { return __bfloat162float(__ushort_as_bfloat16(x.bits)); }
__device__ inline float widen(F16 x) { return __half2float(__ushort_as_half(x.bits)); }

template <class T>
__device__ T narrow(float x);
template <>
__device__ inline float narrow<float>(float x) {
  return x;
}
template <>
__device__ inline Bf16 narrow<Bf16>(float x) {
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}
template <>
__device__ inline F16 narrow<F16>(float x) {
  return {__half_as_ushort(__float2half_rn(x))};
}

}  // namespace crossover::cuda
