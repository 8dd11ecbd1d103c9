// SPDX-License-Identifier: Apache-2.0
#include "optimizer.cuh"

#include <cmath>

#include "vectors.cuh"

namespace crossover::cuda {
namespace {

constexpr int at_once = neighbours<float>;

/// Copy: a type of 16 bits; float where no span has a copy.
template <class Copy, int n>
__device__ void store_copy(const Neighbours<float, n>& w, const UpdateSpan& span, std::int64_t i) {
  if constexpr (!std::is_same_v<Copy, float>) {
    if (span.copy != nullptr) {
      store(w, static_cast<Copy*>(span.copy) + i);
    }
  }
}

template <class Copy>
__global__ void sgd_kernel(UpdateSpans spans, float learning_rate) {
  for (int s = 0; s < spans.count; ++s) {
    const UpdateSpan span = spans.span[s];
    for_neighbours<at_once>(span.count, [&](auto some, std::int64_t i) {
      constexpr int n = decltype(some)::value;
      auto w = load<n>(span.w + i);
      const auto g = load<n>(span.g + i);
      for (int k = 0; k < n; ++k) {
        w.at[k] = crossover::sgd(w.at[k], g.at[k], learning_rate);
      }
      store(w, span.w + i);
      store_copy<Copy>(w, span, i);
    });
  }
}

__global__ void adamw_time_kernel(AdamWFactors<float> f, AdamWClock<float> clock,
                                  std::int32_t* time, AdamWFactors<float>* factors) {
  *time += 1;
  set_time(f, clock, *time);
  *factors = f;
}

template <class Copy>
__global__ void adamw_kernel(UpdateSpans spans, const AdamWFactors<float>* factors) {
  AdamWFactors<float> f = *factors;
  for (int s = 0; s < spans.count; ++s) {
    const UpdateSpan span = spans.span[s];
    f.keep = span.keep;
    for_neighbours<at_once>(span.count, [&](auto some, std::int64_t i) {
      constexpr int n = decltype(some)::value;
      auto w = load<n>(span.w + i);
      const auto g = load<n>(span.g + i);
      auto m = load<n>(span.m + i);
      auto v = load<n>(span.v + i);
      for (int k = 0; k < n; ++k) {
        crossover::adamw(w.at[k], g.at[k], m.at[k], v.at[k], f);
      }
      store(w, span.w + i);
      store(m, span.m + i);
      store(v, span.v + i);
      store_copy<Copy>(w, span, i);
    });
  }
}

}  // namespace

void sgd(cudaStream_t stream, const UpdateSpans& spans, float learning_rate) {
  with_float(spans.copies, [&](auto zero) {
    launch(sgd_kernel<decltype(zero)>, grid_for_largest(spans, at_once), stream, spans,
           learning_rate);
  });
}

void adamw_time(cudaStream_t stream, const AdamWConstants& constants, std::int32_t* time,
                AdamWFactors<float>* factors) {
  // All that is the same at any time is taken from double here, and not on the device.
  const AdamWClock<float> clock{.learning_rate = static_cast<float>(constants.learning_rate),
                                .log_beta1 = static_cast<float>(std::log(constants.beta1)),
                                .log_beta2 = static_cast<float>(std::log(constants.beta2))};
  launch(adamw_time_kernel, {1, 1}, stream, adamw_factors<float>(constants, 0.0, 1), clock, time,
         factors);
}

void adamw(cudaStream_t stream, const UpdateSpans& spans, const AdamWFactors<float>* factors) {
  with_float(spans.copies, [&](auto zero) {
    launch(adamw_kernel<decltype(zero)>, grid_for_largest(spans, at_once), stream, spans, factors);
  });
}

}  // namespace crossover::cuda
