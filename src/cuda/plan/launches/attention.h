// SPDX-License-Identifier: Apache-2.0
// Attention, and what networks are made of that write it out: products of small matrices, and
// softmax.
#pragma once

#include <cstdint>

#include "crossover/operation.h"
#include "operand.h"

namespace crossover::cuda {

struct Site;

// ---- Attention by warps: a query meets the keys, or a key the queries, a tile of 32 at a time,
// one for each lane. Nothing of the size of all scores is stored.

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

// ---- Products of many small matrices that lie in sequences, and the softmax of their rows.

/// From sample to sample, head to head, row to row and column to column, in elements.
struct MatrixSteps {
  std::int64_t sample = 0, head = 0, row = 0, column = 0;
};

struct MatmulSizes {
  MatrixSteps a, b, y;
  std::int64_t samples = 0, heads = 0, m = 0, n = 0, k = 0;
};

/// y [m, n] = scale a [m, k] b [k, n] of each sample and head: a block for each tile of y.
template <template <class> class At>
struct MatmulArguments {
  At<const void> a, b;
  At<void> y;
  MatmulSizes sizes;
  float scale = 1;
  static constexpr OpCategory category = OpCategory::product;
};
using MatmulLaunch = MatmulArguments<Planned>;
void call(const MatmulArguments<Called>& of, const Site& site);

/// Of each part [keys] of x [parts, keys], by a warp. Where parts_of_a_place is not 0, part p sees
/// the keys up to p / parts_of_a_place.
template <template <class> class At>
struct SoftmaxArguments {
  At<const void> x;
  At<void> y;
  std::int64_t parts = 0, keys = 0, parts_of_a_place = 0;
  static constexpr OpCategory category = OpCategory::normalization;
};
using SoftmaxLaunch = SoftmaxArguments<Planned>;
void call(const SoftmaxArguments<Called>& of, const Site& site);

/// By a warp for each part.
template <template <class> class At>
struct SoftmaxGradArguments {
  At<const void> y, dy;
  At<void> dx;
  std::int64_t parts = 0, keys = 0;
  static constexpr OpCategory category = OpCategory::normalization;
};
using SoftmaxGradLaunch = SoftmaxGradArguments<Planned>;
void call(const SoftmaxGradArguments<Called>& of, const Site& site);

}  // namespace crossover::cuda
