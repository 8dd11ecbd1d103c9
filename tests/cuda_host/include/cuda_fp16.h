// SPDX-License-Identifier: Apache-2.0
// What src/cuda/kernels/device/convert.cuh takes of CUDA's header of that name, in the host's
// arithmetic.
#pragma once

#include "crossover/float16.h"

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): these are CUDA's names
struct __half {
  unsigned short bits;
};

inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline float __half2float(__half x) { return crossover::widened(crossover::F16{x.bits}); }
inline __half __float2half_rn(float x) { return {crossover::narrowed<crossover::F16>(x).bits}; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
