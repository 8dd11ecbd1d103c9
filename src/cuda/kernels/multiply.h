// SPDX-License-Identifier: Apache-2.0
// Products of two tensors [outer, places, inner], of which one may be a gate [outer, inner]: of
// images in the plain layout inner is 1, channels-last it is the channels.
#pragma once

#include <cstdint>

#include "crossover/operation.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

/// y = a b; `places` is 1 where b has the shape of a.
template <template <class> class At>
struct MultiplyArguments {
  At<const void> a, b;
  At<void> y;
  std::int64_t outer = 0, places = 0, inner = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using MultiplyLaunch = MultiplyArguments<Planned>;
void call(const MultiplyArguments<Called>& of, const Site& site);

/// sums [outer, inner] of a b over the places: by a warp each where inner is 1, else by a thread.
template <template <class> class At>
struct MultiplySumsArguments {
  At<const void> a, b;
  At<void> sums;
  std::int64_t outer = 0, places = 0, inner = 0;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using MultiplySumsLaunch = MultiplySumsArguments<Planned>;
void call(const MultiplySumsArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
