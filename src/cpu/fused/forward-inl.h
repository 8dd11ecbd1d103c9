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

#include "../approximations.h"
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

HWY_INLINE Vector logistic(Vector x) {
  const Lanes d;
  const Vector one = hn::Set(d, 1.0F);
  return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(x))));
}

/// An activation's result, and its derivative.
struct Activated {
  Vector y, slope;
};

HWY_INLINE Activated gelu_of(Vector x) {
  const Lanes d;
  const Vector one = hn::Set(d, 1.0F);
  const Vector power = hn::Exp(d, hn::Mul(hn::Set(d, -0.5F), hn::Mul(x, x)));
  const Vector t = hn::Div(one, hn::MulAdd(hn::Set(d, normal_tail::scale), hn::Abs(x), one));
  const Vector beyond = hn::Mul(power, hn::Mul(polynomial(t, normal_tail::coefficients), t));
  const Vector probability = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), beyond, hn::Sub(one, beyond));
  const Vector density = hn::Mul(hn::Set(d, normal_density_at_0), power);
  return {hn::Mul(x, probability), hn::MulAdd(x, density, probability)};
}

HWY_INLINE Activated gelu_tanh_of(Vector x) {
  const Lanes d;
  const Vector one = hn::Set(d, 1.0F);
  const Vector constant = hn::Set(d, gelu_tanh::constant);
  const Vector factor = hn::MulAdd(hn::Set(d, gelu_tanh::square), hn::Mul(x, x), constant);
  const Vector s = logistic(hn::Mul(x, factor));
  const Vector y = hn::Mul(x, s);
  const Vector inner = hn::MulSub(hn::Set(d, 3.0F), factor, hn::Add(constant, constant));
  return {y, hn::MulAdd(hn::Mul(y, hn::Sub(one, s)), inner, s)};
}

HWY_INLINE Activated silu_of(Vector x) {
  const Lanes d;
  const Vector one = hn::Set(d, 1.0F);
  const Vector s = logistic(x);
  const Vector y = hn::Mul(x, s);
  return {y, hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one))};
}

HWY_INLINE Vector hardsigmoid_of(Vector x) {
  const Lanes d;
  return held(0, hn::MulAdd(x, hn::Set(d, 1.0F / 6), hn::Set(d, 0.5F)), 1);
}

HWY_INLINE Activated hardswish_of(Vector x) {
  const Lanes d;
  const Vector three = hn::Set(d, 3.0F);
  const Vector between = hn::MulAdd(x, hn::Set(d, 1.0F / 3), hn::Set(d, 0.5F));
  return {hn::Mul(x, hardsigmoid_of(x)),
          hn::IfThenElseZero(hn::Gt(x, hn::Neg(three)),
                             hn::IfThenElse(hn::Lt(x, three), between, hn::Set(d, 1.0F)))};
}

/// In place, of those whose derivative is not told by the result: it goes to `slope`.
inline void apply_with_slope(Activation activation, float* y, float* slope, std::int64_t vectors) {
  const Lanes d;
  const auto to_each = [&](const auto& function) {
    for (std::int64_t v = 0; v < vectors; ++v) {
      const Activated of = function(hn::Load(d, y + v * lanes));
      hn::Store(of.y, d, y + v * lanes);
      hn::Store(of.slope, d, slope + v * lanes);
    }
  };
  switch (activation) {
    case Activation::gelu:
      return to_each([](Vector x) { return gelu_of(x); });
    case Activation::gelu_tanh:
      return to_each([](Vector x) { return gelu_tanh_of(x); });
    case Activation::silu:
      return to_each([](Vector x) { return silu_of(x); });
    case Activation::hardswish:
      return to_each([](Vector x) { return hardswish_of(x); });
    default:
      return;
  }
}

/// In place, of the others that take longer than a store and a load.
inline void apply(Activation activation, float* y, std::int64_t vectors) {
  const Lanes d;
  const auto to_each = [&](const auto& function) {
    for (std::int64_t v = 0; v < vectors; ++v) {
      hn::Store(function(hn::Load(d, y + v * lanes)), d, y + v * lanes);
    }
  };
  switch (activation) {
    case Activation::sigmoid:
      return to_each([](Vector x) { return logistic(x); });
    case Activation::tanh:
      return to_each([](Vector x) { return hyperbolic_tangent(x); });
    case Activation::relu6:
      return to_each([](Vector x) { return held(0, x, 6); });
    case Activation::hardsigmoid:
      return to_each([](Vector x) { return hardsigmoid_of(x); });
    case Activation::leaky_relu:
      return to_each([&](Vector x) {
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, 0.01F)), x);
      });
    default:
      return;
  }
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
    for_each<features, vectors>([&](int f, int v) {  // in this way NaN passes
      sums(f, v) = hn::IfThenElse(hn::Lt(sums(f, v), hn::Zero(d)), hn::Zero(d), sums(f, v));
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
      if (layer.slope == nullptr) {
        apply(layer.activation, y + f * stride, vectors);
      } else {
        apply_with_slope(layer.activation, y + f * stride, layer.slope + to + f * stride, vectors);
      }
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
