// SPDX-License-Identifier: Apache-2.0
// What updates parameters from their gradients.
#pragma once

#include <cstdint>

#include "crossover/elementwise.h"
#include "crossover/operation.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

/// Consecutive tensors that an optimizer treats alike, each at a multiple of 16 bytes.
template <template <class> class At>
struct UpdateSpan {
  At<float> w{};
  At<const void> g{};  // f32, or of 16 bits at a multiple of 8 bytes
  At<float> m{}, v{};  // AdamW's; m: Momentum's velocity
  At<void> copy{};     // of w in 16 bits, at a multiple of 8 bytes; or there is none
  std::int64_t count = 0;
  float keep = 1;  // AdamW's 1 - learning rate * weight decay
};

template <template <class> class At>
struct SgdArguments {
  Spans<At, UpdateSpan<At>> spans;
  float learning_rate = 0;  ///< times the gradient factor
  static constexpr OpCategory category = OpCategory::update;
};
using SgdLaunch = SgdArguments<Planned>;
void call(const SgdArguments<Called>& of, const Site& site);

template <template <class> class At>
struct MomentumArguments {
  Spans<At, UpdateSpan<At>> spans;
  float learning_rate = 0, momentum = 0, gradient_factor = 1;
  static constexpr OpCategory category = OpCategory::update;
};
using MomentumLaunch = MomentumArguments<Planned>;
void call(const MomentumArguments<Called>& of, const Site& site);

/// ++time, and the site's factors for that time.
template <template <class> class At>
struct AdamWTimeArguments {
  At<std::int32_t> time;
  AdamWConstants constants;
  static constexpr OpCategory category = OpCategory::update;
};
using AdamWTimeLaunch = AdamWTimeArguments<Planned>;
void call(const AdamWTimeArguments<Called>& of, const Site& site);

template <template <class> class At>
struct AdamWArguments {
  Spans<At, UpdateSpan<At>> spans;
  static constexpr OpCategory category = OpCategory::update;
};
using AdamWLaunch = AdamWArguments<Planned>;
void call(const AdamWArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
