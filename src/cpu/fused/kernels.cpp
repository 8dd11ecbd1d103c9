// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include "../base/targets.h"

// Highway compiles what lies between its markers once for each target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels.cpp"  // NOLINT(cppcoreguidelines-macro-usage): Highway's way
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>

#include "backward-inl.h"
#include "forward-inl.h"
#include "loss-inl.h"
#include "pass-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace crossover::cpu::fused::HWY_NAMESPACE {
namespace {

void gather(const float* data, std::int64_t ld, const Batch& batch, float* x, std::int64_t begin,
            std::int64_t end) {
  const Lanes d;
  const std::int64_t vectors = vectors_of(batch);
  const auto last = hn::FirstN(d, static_cast<std::size_t>(batch.rows - (vectors - 1) * lanes));
  for (std::int64_t i = begin; i < end; ++i) {
    const float* from = data + i * ld;
    float* to = x + i * batch.stride;
    for (std::int64_t v = 0; v + 1 < vectors; ++v) {
      hn::Store(hn::LoadU(d, from + v * lanes), d, to + v * lanes);
    }
    const std::int64_t at = (vectors - 1) * lanes;
    hn::Store(hn::IfThenElseZero(last, hn::LoadU(d, from + at)), d, to + at);
  }
}

}  // namespace

Kernels kernels() {
  return {.gather = gather,
          .forward = forward,
          .loss = loss,
          .gradient = gradient,
          .sum = sum,
          .sum_bias = sum_bias,
          .update = update,
          .update_bias = update_bias,
          .pass = pass,
          .instructions = hwy::TargetName(HWY_TARGET)};
}

}  // namespace crossover::cpu::fused::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace crossover::cpu::fused {

HWY_EXPORT(kernels);

Kernels best_kernels() { return HWY_DYNAMIC_DISPATCH(kernels)(); }

}  // namespace crossover::cpu::fused
#endif
