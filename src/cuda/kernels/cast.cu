// SPDX-License-Identifier: Apache-2.0
#include "cast.cuh"

#include "vectors.cuh"

namespace crossover::cuda {
namespace {

/// `n` neighbours at once.
template <int n, class From, class To>
__global__ void cast_kernel(CastSpans spans) {
  for (int s = 0; s < spans.count; ++s) {
    const auto* x = static_cast<const From*>(spans.span[s].x);
    auto* y = static_cast<To*>(spans.span[s].y);
    for_neighbours<n>(spans.span[s].count, [&](auto some, std::int64_t i) {
      store(load<decltype(some)::value>(x + i), y + i);
    });
  }
}

template <class From, class To>
void launch_cast(cudaStream_t stream, const CastSpans& spans) {
  constexpr int at_once = neighbours<std::conditional_t<sizeof(From) < sizeof(To), From, To>>;
  bool aligned = true;
  for (int s = 0; s < spans.count; ++s) {
    aligned = aligned && are_aligned({spans.span[s].x, spans.span[s].y});
  }
  with_neighbours<at_once>(aligned, [&](auto some) {
    constexpr int n = decltype(some)::value;
    launch(cast_kernel<n, From, To>, grid_for_largest(spans, n), stream, spans);
  });
}

}  // namespace

void cast(cudaStream_t stream, Type from, Type to, const CastSpans& spans) {
  if (from == to) {
    with_float(from, [&](auto zero) {
      using T = decltype(zero);
      launch_cast<T, T>(stream, spans);
    });
  } else if (from == Type::f32) {
    with_float(to, [&](auto zero) { launch_cast<float, decltype(zero)>(stream, spans); });
  } else {
    with_float(from, [&](auto zero) { launch_cast<decltype(zero), float>(stream, spans); });
  }
}

}  // namespace crossover::cuda
