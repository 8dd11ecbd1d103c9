// SPDX-License-Identifier: Apache-2.0
// Attention by warps: a query meets the keys, or a key the queries, a tile of 32 at a time, one for
// each lane. Nothing of the size of all scores is stored.
#pragma once

#include <cstdint>

#include "crossover/operation.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

/// Of qkv [time, batch, 3 heads d] and y [time, batch, heads d].
struct HeadSizes {
  std::int64_t time = 0, batch = 0, heads = 0, d = 0;
  bool causal = false;
};

/// Wider heads do not fit into the registers and the shared memory that the kernels take.
constexpr std::int64_t widest_head = 128;

/// See Attention.
template <template <class> class At>
struct AttentionArguments {
  At<const void> qkv;
  At<void> y;
  At<float> log_sums;
  HeadSizes sizes;
  static constexpr OpCategory category = OpCategory::product;
};
using AttentionLaunch = AttentionArguments<Planned>;
void call(const AttentionArguments<Called>& of, const Site& site);

/// dq, and for the keys and values expected [batch, heads, time] = the sums of dy y.
template <template <class> class At>
struct AttentionGradQueriesArguments {
  At<const void> qkv, y;
  At<const float> log_sums;
  At<const void> dy;
  At<float> expected;
  At<void> dqkv;
  HeadSizes sizes;
  static constexpr OpCategory category = OpCategory::product;
};
using AttentionGradQueriesLaunch = AttentionGradQueriesArguments<Planned>;
void call(const AttentionGradQueriesArguments<Called>& of, const Site& site);

/// dk and dv.
template <template <class> class At>
struct AttentionGradKeysArguments {
  At<const void> qkv;
  At<const float> log_sums;
  At<const void> dy;
  At<const float> expected;
  At<void> dqkv;
  HeadSizes sizes;
  static constexpr OpCategory category = OpCategory::product;
};
using AttentionGradKeysLaunch = AttentionGradKeysArguments<Planned>;
void call(const AttentionGradKeysArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
