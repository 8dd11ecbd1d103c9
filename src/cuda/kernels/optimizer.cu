// SPDX-License-Identifier: Apache-2.0
#include "../plan/launches/optimizer.h"

#include <type_traits>
#include <variant>

#include "networks.cuh"
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

__device__ void set_keep(AdamWFactors<float>& factors, float keep) { factors.keep = keep; }
template <class Factors>
__device__ void set_keep(Factors& /*factors*/, float /*keep*/) {}

/// Factors that come with the launch, or from the device's memory.
template <class Factors>
__device__ Factors factors_of(const Factors& given, std::int64_t /*stride*/) {
  return given;
}
__device__ AdamWFactors<float> factors_of(const AdamWFactors<float>* given, std::int64_t stride) {
  return *of_network(given, stride);
}

/// With the states that there are.
template <int states>
__device__ Span span_of_network(Span span, std::int64_t stride) {
  span.w = of_network(span.w, stride);
  span.g = of_network(span.g, stride);
  if constexpr (states > 0) {
    span.m = of_network(span.m, stride);
  }
  if constexpr (states > 1) {
    span.v = of_network(span.v, stride);
  }
  if (span.copy.at != nullptr) {
    span.copy = of_network(span.copy, stride);
  }
  return span;
}

template <class Short, int states, class Given>
__global__ void __launch_bounds__(block_threads, blocks_at_once<(states > 1 ? 6 : 8)>)
    update_kernel(CalledUpdates spans, Given given, std::int64_t stride) {
  auto by = factors_of(given, stride);
  for (int s = 0; s < spans.count; ++s) {
    const Span span = span_of_network<states>(spans.span[s], stride);
    set_keep(by, span.keep);
    for_neighbours<at_once>(span.count, [&](auto some, std::int64_t i) {
      constexpr int n = decltype(some)::value;
      auto w = load<n>(span.w + i);
      const auto g = load_gradient<Short, n>(span, i);
      Neighbours<float, n> m{};
      Neighbours<float, n> v{};
      if constexpr (states > 0) {
        m = load<n>(span.m + i);
      }
      if constexpr (states > 1) {
        v = load<n>(span.v + i);
      }
      for (int k = 0; k < n; ++k) {
        by.update(w.at[k], g.at[k], m.at[k], v.at[k]);
      }
      store(w, span.w + i);
      if constexpr (states > 0) {
        store(m, span.m + i);
      }
      if constexpr (states > 1) {
        store(v, span.v + i);
      }
      store_copy<Short>(w, span, i);
    });
  }
}

__global__ void adamw_time_kernel(AdamWFactors<float> f, AdamWClock<float> clock,
                                  std::int32_t* time, AdamWFactors<float>* factors,
                                  std::int64_t stride) {
  time = of_network(time, stride);
  *time += 1;
  f.set_time(clock, *time);
  *of_network(factors, stride) = f;
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

void call(const UpdateArguments<Called>& of, const Site& site) {
  const auto update = [&](const auto& rule) {
    using Rule = std::remove_cvref_t<decltype(rule)>;
    const auto by = [&](const auto& given) {
      with_float(shortest_type(of.spans), [&](auto zero) {
        launch_for_networks(update_kernel<decltype(zero), static_cast<int>(Rule::states.size()),
                                          std::remove_cvref_t<decltype(given)>>,
                            grid_for_largest(of.spans, at_once), site, of.spans, given);
      });
    };
    if constexpr (Rule::counts_steps) {
      by(static_cast<const AdamWFactors<float>*>(site.factors));
    } else {
      by(rule.template factors<float>({.gradient_factor = of.gradient_factor}));
    }
  };
  std::visit(update, of.rule);
}

void call(const AdamWTimeArguments<Called>& of, const Site& site) {
  // All that is the same at any time is taken from double here, and not on the device.
  launch_for_networks(adamw_time_kernel, {1, 1}, site,
                      of.rule.factors<float>({.gradient_factor = of.gradient_factor}),
                      of.rule.clock(), of.time, site.factors);
}

}  // namespace crossover::cuda
