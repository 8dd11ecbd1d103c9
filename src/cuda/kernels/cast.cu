// SPDX-License-Identifier: Apache-2.0
#include "cast.cuh"

#include "../grid.cuh"
#include "convert.cuh"

namespace crossover::cuda {
namespace {

template <class From, class To>
__global__ void cast_kernel(CastSpans spans) {
  for (int s = 0; s < spans.count; ++s) {
    const auto* x = static_cast<const From*>(spans.span[s].x);
    auto* y = static_cast<To*>(spans.span[s].y);
    const std::int64_t count = spans.span[s].count;
    for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
      y[i] = narrow<To>(widen(x[i]));
    }
  }
}

}  // namespace

void cast(cudaStream_t stream, Type from, Type to, const CastSpans& spans) {
  const Grid grid = grid_for_largest(spans);
  if (from == Type::f32) {
    with_float(to,
               [&](auto zero) { launch(cast_kernel<float, decltype(zero)>, grid, stream, spans); });
  } else {
    with_float(from,
               [&](auto zero) { launch(cast_kernel<decltype(zero), float>, grid, stream, spans); });
  }
}

}  // namespace crossover::cuda
