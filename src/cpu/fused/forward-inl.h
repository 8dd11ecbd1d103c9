// SPDX-License-Identifier: Apache-2.0
// A layer forward: product, bias and activation.
// Compiled once for each target (Highway), so the guard opens again for each.
#if defined(CROSSOVER_CPU_FUSED_FORWARD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CROSSOVER_CPU_FUSED_FORWARD_INL_H
#undef CROSSOVER_CPU_FUSED_FORWARD_INL_H
#else
#define CROSSOVER_CPU_FUSED_FORWARD_INL_H
#endif

// clang-format off
#include "kernels.h"
#include "maths-inl.h"
#include "tiles-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::fused::HWY_NAMESPACE {
namespace {

/// In place. Where the result does not tell the derivative, that goes to `slope`.
inline void apply(Activation activation, float* y, float* slope, std::int64_t vectors) {
  const Lanes d;
  HWY_NAMESPACE::with_activation(activation, [=](auto of) {
    for (std::int64_t v = 0; v < vectors; ++v) {
      const Vector x = hn::Load(d, y + v * lanes);
      hn::Store(of.value(LaneMaths(), x), d, y + v * lanes);
      if constexpr (decltype(of)::takes_input) {
        hn::Store(of.gradient(LaneMaths(), hn::Set(d, 1.0F), x), d, slope + v * lanes);
      }
    }
  });
}

/// What inputs [begin, end) add to `features` outputs of `vectors` times `lanes` samples;
/// `weights`, `bias` and `x` point to the first of them, and those of y begin at `to`.
template <int features, int vectors>
void forward_tile(const Layer& layer, std::int64_t stride, std::int64_t begin, std::int64_t end,
                  const float* weights, const float* bias, const float* x, std::int64_t to) {
  const Lanes d;
  float* y = layer.y + to;
  Sums<features, vectors> sums;
  for_each<features, vectors>([&](int f, int v) {
    sums(f, v) = begin == 0 ? hn::Set(d, bias[f]) : hn::Load(d, y + f * stride + v * lanes);
  });
  for (std::int64_t i = begin; i < end; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const Vector sample = loaded(x + i * stride + v * lanes);
#pragma GCC unroll 8
      for (int f = 0; f < features; ++f) {
        sums(f, v) = hn::MulAdd(hn::Set(d, weights[i * layer.ld + f]), sample, sums(f, v));
      }
    }
  }
  const bool whole = end == layer.in;
  if (whole && layer.activation == Activation::relu) {
    for_each<features, vectors>([&](int f, int v) {
      sums(f, v) = ActivationOf<Activation::relu>::value(LaneMaths(), sums(f, v));
    });
  }
  for_each<features, vectors>(
      [&](int f, int v) { hn::Store(sums(f, v), d, y + f * stride + v * lanes); });
  if (whole && layer.sum != nullptr) {
    for_each<features, vectors>(
        [&](int f, int v) { hn::Store(sums(f, v), d, layer.sum + to + f * stride + v * lanes); });
  }
  if (whole && layer.activation != Activation::identity && layer.activation != Activation::relu) {
    for (std::int64_t f = 0; f < features; ++f) {
      apply(layer.activation, y + f * stride,
            layer.slope == nullptr ? nullptr : layer.slope + to + f * stride, vectors);
    }
  }
}

inline void forward(const Layer& layer, const Batch& batch, std::int64_t begin, std::int64_t end) {
  for_each_part<most_vectors>(0, vectors_of(batch), [&](auto vectors, std::int64_t v) {
    for_each_block(layer.in, [&](std::int64_t first, std::int64_t last) {
      for_each_part<most_features<vectors>>(begin, end, [&](auto features, std::int64_t o) {
        forward_tile<features, vectors>(layer, batch.stride, first, last, layer.weights + o,
                                        layer.bias + o, layer.x + v * lanes,
                                        o * batch.stride + v * lanes);
      });
    });
  });
}

}  // namespace
}  // namespace crossover::cpu::fused::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
