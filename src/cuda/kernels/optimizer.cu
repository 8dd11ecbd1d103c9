// SPDX-License-Identifier: Apache-2.0
#include "optimizer.h"

#include <cmath>

#include "site.h"
#include "vectors.cuh"

namespace crossover::cuda {
namespace {

using Span = UpdateSpan<Called>;
using CalledUpdates = CalledSpans<Span>;

constexpr int at_once = neighbours<float>;

/// Short: the type of 16 bits in which gradients and copies may be; float where none is.
template <class Short, int n>
__device__ Neighbours<float, n> load_gradient(const Span& span, std::int64_t i) {
  if constexpr (!std::is_same_v<Short, float>) {
    if (span.g.type != Type::f32) {
      return load<n>(static_cast<const Short*>(span.g.at) + i);
    }
  }
  return load<n>(static_cast<const float*>(span.g.at) + i);
}

template <class Short, int n>
__device__ void store_copy(const Neighbours<float, n>& w, const Span& span, std::int64_t i) {
  if constexpr (!std::is_same_v<Short, float>) {
    if (span.copy.at != nullptr) {
      store(w, static_cast<Short*>(span.copy.at) + i);
    }
  }
}

template <class Short>
__global__ void sgd_kernel(CalledUpdates spans, float learning_rate) {
  for (int s = 0; s < spans.count; ++s) {
    const Span span = spans.span[s];
    for_neighbours<at_once>(span.count, [&](auto some, std::int64_t i) {
      constexpr int n = decltype(some)::value;
      auto w = load<n>(span.w + i);
      const auto g = load_gradient<Short, n>(span, i);
      for (int k = 0; k < n; ++k) {
        w.at[k] = crossover::sgd(w.at[k], g.at[k], learning_rate);
      }
      store(w, span.w + i);
      store_copy<Short>(w, span, i);
    });
  }
}

template <class Short>
__global__ void momentum_kernel(CalledUpdates spans, float learning_rate, float momentum,
                                float gradient_factor) {
  for (int s = 0; s < spans.count; ++s) {
    const Span span = spans.span[s];
    for_neighbours<at_once>(span.count, [&](auto some, std::int64_t i) {
      constexpr int n = decltype(some)::value;
      auto w = load<n>(span.w + i);
      const auto g = load_gradient<Short, n>(span, i);
      auto velocity = load<n>(span.m + i);
      for (int k = 0; k < n; ++k) {
        crossover::momentum(w.at[k], gradient_factor * g.at[k], velocity.at[k], learning_rate,
                            momentum);
      }
      store(w, span.w + i);
      store(velocity, span.m + i);
      store_copy<Short>(w, span, i);
    });
  }
}

__global__ void adamw_time_kernel(AdamWFactors<float> f, AdamWClock<float> clock,
                                  std::int32_t* time, AdamWFactors<float>* factors) {
  *time += 1;
  set_time(f, clock, *time);
  *factors = f;
}

template <class Short>
__global__ void adamw_kernel(CalledUpdates spans, const AdamWFactors<float>* factors) {
  AdamWFactors<float> f = *factors;
  for (int s = 0; s < spans.count; ++s) {
    const Span span = spans.span[s];
    f.keep = span.keep;
    for_neighbours<at_once>(span.count, [&](auto some, std::int64_t i) {
      constexpr int n = decltype(some)::value;
      auto w = load<n>(span.w + i);
      const auto g = load_gradient<Short, n>(span, i);
      auto m = load<n>(span.m + i);
      auto v = load<n>(span.v + i);
      for (int k = 0; k < n; ++k) {
        crossover::adamw(w.at[k], g.at[k], m.at[k], v.at[k], f);
      }
      store(w, span.w + i);
      store(m, span.m + i);
      store(v, span.v + i);
      store_copy<Short>(w, span, i);
    });
  }
}

/// Of 16 bits where a gradient or a copy is.
Type shortest_type(const CalledUpdates& spans) {
  for (int s = 0; s < spans.count; ++s) {
    const Span& span = spans.span[s];
    if (span.g.type != Type::f32) {
      return span.g.type;
    }
    if (span.copy.at != nullptr) {
      return span.copy.type;
    }
  }
  return Type::f32;
}

}  // namespace

void call(const SgdArguments<Called>& of, const Site& site) {
  with_float(shortest_type(of.spans), [&](auto zero) {
    launch(sgd_kernel<decltype(zero)>, grid_for_largest(of.spans, at_once), site.stream, of.spans,
           of.learning_rate);
  });
}

void call(const MomentumArguments<Called>& of, const Site& site) {
  with_float(shortest_type(of.spans), [&](auto zero) {
    launch(momentum_kernel<decltype(zero)>, grid_for_largest(of.spans, at_once), site.stream,
           of.spans, of.learning_rate, of.momentum, of.gradient_factor);
  });
}

void call(const AdamWTimeArguments<Called>& of, const Site& site) {
  // All that is the same at any time is taken from double here, and not on the device.
  const AdamWClock<float> clock{.learning_rate = static_cast<float>(of.constants.learning_rate),
                                .log_beta1 = static_cast<float>(std::log(of.constants.beta1)),
                                .log_beta2 = static_cast<float>(std::log(of.constants.beta2))};
  launch(adamw_time_kernel, {1, 1}, site.stream, adamw_factors<float>(of.constants, 0.0, 1), clock,
         of.time, site.factors);
}

void call(const AdamWArguments<Called>& of, const Site& site) {
  with_float(shortest_type(of.spans), [&](auto zero) {
    launch(adamw_kernel<decltype(zero)>, grid_for_largest(of.spans, at_once), site.stream, of.spans,
           site.factors);
  });
}

}  // namespace crossover::cuda
