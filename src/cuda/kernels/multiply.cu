// SPDX-License-Identifier: Apache-2.0
#include "multiply.h"

#include "convert.cuh"
#include "site.h"
#include "warp.cuh"

namespace crossover::cuda {
namespace {

template <class T>
__global__ void multiply_kernel(MultiplyArguments<Called> of) {
  const T* a = of.a;
  const T* b = of.b;
  T* y = of.y;
  const std::int64_t count = of.outer * of.places * of.inner;
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t factor =
        of.places == 1 ? i : i / (of.places * of.inner) * of.inner + i % of.inner;
    y[i] = narrow<T>(widen(a[i]) * widen(b[factor]));
  }
}

/// Neighbouring threads read neighbours.
template <class T>
__global__ void multiply_sums_kernel(MultiplySumsArguments<Called> of) {
  const T* a = of.a;
  const T* b = of.b;
  T* sums = of.sums;
  for (std::int64_t i = thread_index(); i < of.outer * of.inner; i += thread_count()) {
    const std::int64_t first = i / of.inner * of.places * of.inner + i % of.inner;
    float sum = 0;
    for (std::int64_t place = 0; place < of.places; ++place) {
      const std::int64_t at = first + place * of.inner;
      sum += widen(a[at]) * widen(b[at]);
    }
    sums[i] = narrow<T>(sum);
  }
}

template <class T>
__global__ void multiply_row_sums_kernel(MultiplySumsArguments<Called> of) {
  const T* a = of.a;
  const T* b = of.b;
  T* sums = of.sums;
  const int lane = static_cast<int>(threadIdx.x) % warp_threads;
  for (std::int64_t row = thread_index() / warp_threads; row < of.outer;
       row += thread_count() / warp_threads) {
    float sum = 0;
    for (std::int64_t place = lane; place < of.places; place += warp_threads) {
      sum += widen(a[row * of.places + place]) * widen(b[row * of.places + place]);
    }
    sum = group_sum(sum);
    if (lane == 0) {
      sums[row] = narrow<T>(sum);
    }
  }
}

}  // namespace

void call(const MultiplyArguments<Called>& of, const Site& site) {
  with_float(of.y.type, [&](auto zero) {
    launch(multiply_kernel<decltype(zero)>, grid_for(of.outer * of.places * of.inner), site.stream,
           of);
  });
}

void call(const MultiplySumsArguments<Called>& of, const Site& site) {
  with_float(of.sums.type, [&](auto zero) {
    using T = decltype(zero);
    if (of.inner == 1) {
      launch(multiply_row_sums_kernel<T>, grid_for(of.outer * warp_threads), site.stream, of);
    } else {
      launch(multiply_sums_kernel<T>, grid_for(of.outer * of.inner), site.stream, of);
    }
  });
}

}  // namespace crossover::cuda
