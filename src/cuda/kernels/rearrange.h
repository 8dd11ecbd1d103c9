// SPDX-License-Identifier: Apache-2.0
// Blocks of numbers copied from one tensor to another.
#pragma once

#include <cstdint>

#include "crossover/operation.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

/// From the largest step in `to` to the smallest: the first `used` of them.
struct CopiedExtents {
  static constexpr int most = 8;
  int used = 0;
  std::int64_t count[most] = {};  // NOLINT(*-avoid-c-arrays): of device code
  std::int64_t from[most] = {};   // NOLINT(*-avoid-c-arrays)
  std::int64_t to[most] = {};     // NOLINT(*-avoid-c-arrays)
};

/// Of each index i: to[to_first + sum i to] = from[from_first + sum i from]. As many numbers as
/// `count`, which is the product of the extents.
template <template <class> class At>
struct RearrangeArguments {
  At<const void> from;
  At<void> to;
  std::int64_t from_first = 0, to_first = 0;
  std::int64_t count = 0;
  CopiedExtents extents;
  static constexpr OpCategory category = OpCategory::elementwise;
};
using RearrangeLaunch = RearrangeArguments<Planned>;
void call(const RearrangeArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
