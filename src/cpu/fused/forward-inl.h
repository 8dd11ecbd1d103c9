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
#include <hwy/contrib/math/math-inl.h>

#include "../rational_tanh.h"
#include "kernels.h"
#include "tiles-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::fused::HWY_NAMESPACE {
namespace {

/// Between both; NaN passes.
HWY_INLINE Vector held(float least, Vector x, float most) {
  const Lanes d;
  const Vector low = hn::Set(d, least);
  const Vector high = hn::Set(d, most);
  return hn::IfThenElse(hn::Lt(x, low), low, hn::IfThenElse(hn::Gt(x, high), high, x));
}

template <class Coefficients>
HWY_INLINE Vector polynomial(Vector at, const Coefficients& coefficients) {
  const Lanes d;
  Vector p = hn::Zero(d);
  for (const float coefficient : coefficients) {
    p = hn::MulAdd(p, at, hn::Set(d, coefficient));
  }
  return p;
}

HWY_INLINE Vector hyperbolic_tangent(Vector x) {
  const Vector inside = held(-rational_tanh::limit, x, rational_tanh::limit);
  const Vector s = hn::Mul(inside, inside);
  return hn::Div(hn::Mul(inside, polynomial(s, rational_tanh::numerator)),
                 polynomial(s, rational_tanh::denominator));
}

/// In place, of those that take longer than a store and a load.
inline void apply(Activation activation, float* y, std::int64_t vectors) {
  const Lanes d;
  const Vector one = hn::Set(d, 1.0F);
  const auto to_each = [&](const auto& function) {
    for (std::int64_t v = 0; v < vectors; ++v) {
      hn::Store(function(hn::Load(d, y + v * lanes)), d, y + v * lanes);
    }
  };
  switch (activation) {
    case Activation::sigmoid:
      return to_each([&](Vector x) { return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(x)))); });
    case Activation::tanh:
      return to_each([](Vector x) { return hyperbolic_tangent(x); });
    case Activation::relu6:
      return to_each([&](Vector x) { return held(0, x, 6); });
    case Activation::hardsigmoid:
      return to_each([&](Vector x) {
        return held(0, hn::MulAdd(x, hn::Set(d, 1.0F / 6), hn::Set(d, 0.5F)), 1);
      });
    case Activation::leaky_relu:
      return to_each([&](Vector x) {
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, 0.01F)), x);
      });
    default:
      return;
  }
}

/// What inputs [begin, end) add to `features` outputs of `vectors` times `lanes` samples;
/// everything points to the first of them.
template <int features, int vectors>
void forward_tile(const Layer& layer, std::int64_t stride, std::int64_t begin, std::int64_t end,
                  const float* weights, const float* bias, const float* x, float* y) {
  const Lanes d;
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
    for_each<features, vectors>([&](int f, int v) {  // in this way NaN passes
      sums(f, v) = hn::IfThenElse(hn::Lt(sums(f, v), hn::Zero(d)), hn::Zero(d), sums(f, v));
    });
  }
  for_each<features, vectors>(
      [&](int f, int v) { hn::Store(sums(f, v), d, y + f * stride + v * lanes); });
  if (whole && layer.activation != Activation::identity && layer.activation != Activation::relu) {
    for (int f = 0; f < features; ++f) {
      apply(layer.activation, y + f * stride, vectors);
    }
  }
}

inline void forward(const Layer& layer, const Batch& batch, std::int64_t begin, std::int64_t end) {
  for_each_part<most_vectors>(0, vectors_of(batch), [&](auto vectors, std::int64_t v) {
    for_each_block(layer.in, [&](std::int64_t first, std::int64_t last) {
      for_each_part<most_features<vectors>>(begin, end, [&](auto features, std::int64_t o) {
        forward_tile<features, vectors>(layer, batch.stride, first, last, layer.weights + o,
                                        layer.bias + o, layer.x + v * lanes,
                                        layer.y + o * batch.stride + v * lanes);
      });
    });
  });
}

}  // namespace
}  // namespace crossover::cpu::fused::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
