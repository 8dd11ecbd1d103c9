// SPDX-License-Identifier: Apache-2.0
// Stands in for src/cuda/device/convert.cuh: the same conversions, in the host's arithmetic.
#pragma once

#include "crossover/float16.h"

namespace crossover::cuda {

template <class T>
float widen(T x) {
  return widened(x);
}

template <class T>
T narrow(float x) {
  return narrowed<T>(x);
}

}  // namespace crossover::cuda
