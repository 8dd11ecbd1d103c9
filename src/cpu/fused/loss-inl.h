// SPDX-License-Identifier: Apache-2.0
// The loss and its gradient, a vector of samples at once.
// Compiled once for each target (Highway), so the guard opens again for each.
#if defined(CROSSOVER_CPU_FUSED_LOSS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CROSSOVER_CPU_FUSED_LOSS_INL_H
#undef CROSSOVER_CPU_FUSED_LOSS_INL_H
#else
#define CROSSOVER_CPU_FUSED_LOSS_INL_H
#endif

// clang-format off
#include <algorithm>

#include <hwy/contrib/math/math-inl.h>

#include "kernels.h"
#include "tiles-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::fused::HWY_NAMESPACE {
namespace {

/// of_one(logit, target, slope): the losses of a vector, and their derivatives.
template <class OfOne>
double loss_of_elements(const Loss& of, const Batch& batch, std::int64_t begin, std::int64_t end,
                        const OfOne& of_one) {
  const Lanes d;
  const Vector factor = hn::Set(d, of.factor);
  constexpr std::int64_t summed = 32 * lanes;  // a long sum of floats would lose digits
  double sum = 0;
  for (std::int64_t c = 0; c < of.classes; ++c) {
    const float* logits = of.logits + c * batch.stride;
    const float* targets = of.targets + c * of.targets_ld;
    float* gradients = of.dlogits + c * batch.stride;
    for (std::int64_t first = begin; first < end; first += summed) {
      Vector losses = hn::Zero(d);
      for (std::int64_t row = first; row < std::min(end, first + summed); row += lanes) {
        const auto rows = std::clamp<std::int64_t>(batch.rows - row, 0, lanes);
        const auto inside = hn::FirstN(d, static_cast<std::size_t>(rows));
        Vector slope;
        const Vector loss = of_one(hn::Load(d, logits + row), hn::LoadU(d, targets + row), slope);
        losses = hn::Add(losses, hn::IfThenElseZero(inside, loss));
        hn::Store(hn::IfThenElseZero(inside, hn::Mul(slope, factor)), d, gradients + row);
      }
      sum += hn::GetLane(hn::SumOfLanes(d, losses));
    }
  }
  return sum;
}

inline double squared_error(const Loss& of, const Batch& batch, std::int64_t begin,
                            std::int64_t end) {
  return loss_of_elements(of, batch, begin, end, [](Vector x, Vector target, Vector& slope) {
    const Vector difference = hn::Sub(x, target);
    slope = hn::Add(difference, difference);
    return hn::Mul(difference, difference);
  });
}

inline double binary_cross_entropy(const Loss& of, const Batch& batch, std::int64_t begin,
                                   std::int64_t end) {
  const Lanes d;
  const Vector one = hn::Set(d, 1.0F);
  return loss_of_elements(of, batch, begin, end, [&](Vector x, Vector target, Vector& slope) {
    const Vector e = hn::Exp(d, hn::Neg(hn::Abs(x)));
    const Vector less = hn::Div(e, hn::Add(one, e));  // as in crossover/functions.h
    slope = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(less, target),
                           hn::Sub(hn::Sub(one, target), less));
    const Vector larger = hn::NegMulAdd(x, target, hn::Max(x, hn::Zero(d)));
    return hn::Add(larger, hn::Log1p(d, e));
  });
}

inline double softmax_cross_entropy(const Loss& of, const Batch& batch, std::int64_t begin,
                                    std::int64_t end) {
  const Lanes d;
  const hn::RebindToSigned<Lanes> whole;
  const Vector factor = hn::Set(d, of.factor);
  Vector sum_of_losses = hn::Zero(d);
  for (std::int64_t row = begin; row < end; row += lanes) {
    const auto rows = std::clamp<std::int64_t>(batch.rows - row, 0, lanes);
    const auto inside = hn::FirstN(d, static_cast<std::size_t>(rows));
    const auto labels = hn::LoadU(whole, of.labels + row);
    const auto is_label = [&](std::int64_t c) {
      return hn::RebindMask(d, hn::Eq(labels, hn::Set(whole, static_cast<std::int32_t>(c))));
    };
    const float* logits = of.logits + row;
    float* gradients = of.dlogits + row;
    Vector largest = hn::Load(d, logits);
    for (std::int64_t c = 1; c < of.classes; ++c) {
      largest = hn::Max(largest, hn::Load(d, logits + c * batch.stride));
    }
    Vector others = hn::Zero(d);  // than the label: see operations/loss.cpp
    Vector at_label = hn::Zero(d);
    Vector of_label = hn::Zero(d);
    for (std::int64_t c = 0; c < of.classes; ++c) {
      const Vector logit = hn::Load(d, logits + c * batch.stride);
      const Vector e = hn::Exp(d, hn::Sub(logit, largest));
      others = hn::Add(others, hn::IfThenZeroElse(is_label(c), e));
      at_label = hn::IfThenElse(is_label(c), logit, at_label);
      of_label = hn::IfThenElse(is_label(c), e, of_label);
      hn::Store(e, d, gradients + c * batch.stride);
    }
    const Vector above_one = hn::Add(others, hn::Sub(of_label, hn::Set(d, 1.0F)));
    const Vector losses = hn::Add(hn::Sub(largest, at_label), hn::Log1p(d, above_one));
    sum_of_losses = hn::Add(sum_of_losses, hn::IfThenElseZero(inside, losses));
    const Vector normalized = hn::Div(factor, hn::Add(others, of_label));
    for (std::int64_t c = 0; c < of.classes; ++c) {
      const Vector slope =
          hn::IfThenElse(is_label(c), hn::Neg(others), hn::Load(d, gradients + c * batch.stride));
      const Vector gradient = hn::Mul(slope, normalized);
      hn::Store(hn::IfThenElseZero(inside, gradient), d, gradients + c * batch.stride);
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, sum_of_losses));
}

inline double loss(const Loss& of, const Batch& batch, std::int64_t begin, std::int64_t end) {
  switch (of.function) {
    case LossFunction::mse:
      return squared_error(of, batch, begin, end);
    case LossFunction::bce:
      return binary_cross_entropy(of, batch, begin, end);
    case LossFunction::cross_entropy:
      break;
  }
  return softmax_cross_entropy(of, batch, begin, end);
}

}  // namespace
}  // namespace crossover::cpu::fused::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
