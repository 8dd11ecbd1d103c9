// SPDX-License-Identifier: Apache-2.0
// What updates parameters from their gradients.
#pragma once

#include <cstdint>

#include "crossover/operation.h"
#include "crossover/operations/update.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

/// Consecutive tensors that an optimizer treats alike, each at a multiple of 16 bytes.
template <template <class> class At>
struct UpdateSpan {
  At<float> w{};
  At<const void> g{};  // f32, or of 16 bits at a multiple of 8 bytes
  At<float> m{}, v{};  // the rule's states, as many as it has
  At<void> copy{};     // of w in 16 bits, at a multiple of 8 bytes; or there is none
  std::int64_t count = 0;
  float keep = 1;  // AdamW's 1 - learning rate * weight decay
};

template <template <class> class At>
struct UpdateArguments {
  Spans<At, UpdateSpan<At>> spans;
  Optimizer rule;
  double gradient_factor = 1;
  static constexpr OpCategory category = OpCategory::update;
};
using UpdateLaunch = UpdateArguments<Planned>;
void call(const UpdateArguments<Called>& of, const Site& site);

/// ++time, and the site's factors for that time.
template <template <class> class At>
struct AdamWTimeArguments {
  At<std::int32_t> time;
  AdamWOptions rule;
  double gradient_factor = 1;
  static constexpr OpCategory category = OpCategory::update;
};
using AdamWTimeLaunch = AdamWTimeArguments<Planned>;
void call(const AdamWTimeArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
