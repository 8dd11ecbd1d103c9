// SPDX-License-Identifier: Apache-2.0
// Multi-head self-attention (Vaswani et al. 2017) behind the product that makes queries, keys and
// values, and its gradient.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/operation.h"

namespace crossover {

/// y = softmax(q kT / sqrt(d)) v for each sequence and head. qkv [time, batch, 3 width] holds q, k
/// and v, of width numbers each; a head has d = width / heads of them, one behind the other.
/// causal: a query sees keys up to its own place. log_sums [batch, heads, time] f32 are the
/// logarithms of the sums of exponentials, from which a gradient finds the probabilities again:
/// nothing of the size of all scores is kept. y [time, batch, width]; qkv and y are T.
struct Attention {
  Id qkv = none, y = none, log_sums = none;
  std::int64_t heads = 1;
  bool causal = false;

  static constexpr const char* name = "Attention";
  static constexpr OpCategory category = OpCategory::product;
  template <class See>
  void describe(See& see) const {
    see.reads("qkv", qkv);
    see.writes("y", y);
    see.writes("log_sums", log_sums);
    see.value("heads", heads);
    see.value("causal", causal);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  /// None that could be measured by itself: a head's are small, and made tile by tile.
  [[nodiscard]] static std::vector<OpProduct> products(const Workload& /*workload*/) { return {}; }
  void execute(ReferenceRun& run) const;
};

/// The gradient of an Attention from dy, like its y. With the scores s = q kT / sqrt(d), their
/// p = exp(s - log_sums), and ds = p (dy vT - the sums over d of dy y):
/// dv = pT dy, dq = ds k / sqrt(d), dk = dsT q / sqrt(d). qkv, y, dy and dqkv are T.
struct AttentionGrad {
  Id qkv = none, y = none, log_sums = none, dy = none, dqkv = none;
  std::int64_t heads = 1;
  bool causal = false;

  static constexpr const char* name = "AttentionGrad";
  static constexpr OpCategory category = OpCategory::product;
  template <class See>
  void describe(See& see) const {
    see.reads("qkv", qkv);
    see.reads("y", y);
    see.reads("log_sums", log_sums);
    see.reads("dy", dy);
    see.writes("dqkv", dqkv);
    see.value("heads", heads);
    see.value("causal", causal);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  /// None that could be measured by itself: a head's are small, and made tile by tile.
  [[nodiscard]] static std::vector<OpProduct> products(const Workload& /*workload*/) { return {}; }
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
