// SPDX-License-Identifier: Apache-2.0
#include "denormals.h"

#ifdef __SSE3__
#include <pmmintrin.h>
#include <xmmintrin.h>
#endif

namespace crossover::cpu {

bool can_flush_denormals() {
#ifdef __SSE3__
  return true;
#else
  return false;
#endif
}

void flush_denormals(int threads) {
#ifdef __SSE3__
#pragma omp parallel num_threads(threads)
  {
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
  }
#else
  static_cast<void>(threads);
#endif
}

}  // namespace crossover::cpu
