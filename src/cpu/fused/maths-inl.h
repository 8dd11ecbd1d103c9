// SPDX-License-Identifier: Apache-2.0
// Activations of vectors of samples.
// Compiled once for each target (Highway), so the guard opens again for each.
#if defined(CROSSOVER_CPU_FUSED_MATHS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CROSSOVER_CPU_FUSED_MATHS_INL_H
#undef CROSSOVER_CPU_FUSED_MATHS_INL_H
#else
#define CROSSOVER_CPU_FUSED_MATHS_INL_H
#endif

// clang-format off
#include <array>
#include <vector>

#include <hwy/contrib/math/math-inl.h>

#include "crossover/activation.h"
#include "tiles-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::fused::HWY_NAMESPACE {
namespace {

#include "../base/approximations-inl.h"
#include "crossover/activations-inl.h"

/// What their formulas are written in.
struct LaneMaths {
  static HWY_INLINE Vector number(double x) { return hn::Set(Lanes(), static_cast<float>(x)); }
  static HWY_INLINE Vector where(hn::Mask<Lanes> condition, Vector then, Vector otherwise) {
    return hn::IfThenElse(condition, then, otherwise);
  }
  static HWY_INLINE Vector only_where(hn::Mask<Lanes> condition, Vector then) {
    return hn::IfThenElseZero(condition, then);
  }
  static HWY_INLINE Vector absolute(Vector x) { return hn::Abs(x); }
  static HWY_INLINE Vector multiply_add(Vector a, Vector b, Vector c) {
    return hn::MulAdd(a, b, c);
  }
  /// NaN passes, which Highway's makes 0 of.
  static HWY_INLINE Vector exponential(Vector x) {
    return hn::IfThenElse(hn::Eq(x, x), hn::Exp(Lanes(), x), x);
  }
  static HWY_INLINE Vector hyperbolic_tangent(Vector x) { return rational_tanh(LaneMaths(), x); }
  static HWY_INLINE Vector normal_probability(Vector x) {
    return normal_probability_of(LaneMaths(), x);
  }
  static HWY_INLINE Vector normal_density(Vector x) { return normal_density_of(LaneMaths(), x); }
};

}  // namespace
}  // namespace crossover::cpu::fused::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
