// SPDX-License-Identifier: Apache-2.0
// What transformers consist of beside products and normalization.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/operation.h"

namespace crossover {

/// y [time, batch, width] = row tokens[b, t] of the table, for each t and b.
/// tokens [batch, time] i32, table [vocabulary, width], table and y T. Sequences lie time first
/// behind an Embedding, as in PyTorch.
struct Embedding {
  Id tokens = none, table = none, y = none;

  static constexpr const char* name = "Embedding";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("tokens", tokens);
    see.reads("table", table);
    see.writes("y", y);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dtable [vocabulary, width] = for each row the sum of dy over the positions of its token, zero
/// where it has none. tokens [batch, time] i32, dy [time, batch, width] T, dtable f32.
struct EmbeddingGrad {
  Id tokens = none, dy = none, dtable = none;

  static constexpr const char* name = "EmbeddingGrad";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("tokens", tokens);
    see.reads("dy", dy);
    see.writes("dtable", dtable);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// y = x + row t of the table, for each t and b. x and y [time, batch, width], table [time, width],
/// all T.
struct PositionEmbedding {
  Id x = none, table = none, y = none;

  static constexpr const char* name = "PositionEmbedding";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("table", table);
    see.writes("y", y);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// dtable [time, width] = the sum of dy [time, batch, width] over the batch. dy T, dtable f32.
struct PositionEmbeddingGrad {
  Id dy = none, dtable = none;

  static constexpr const char* name = "PositionEmbeddingGrad";
  static constexpr OpCategory category = OpCategory::elementwise;
  template <class See>
  void describe(See& see) const {
    see.reads("dy", dy);
    see.writes("dtable", dtable);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Multi-head self-attention (Vaswani et al. 2017) behind the product that makes queries, keys and
/// values: y = softmax(q kT / sqrt(d)) v for each sequence and head. qkv [time, batch, 3 width]
/// holds q, k and v, of width numbers each; a head has d = width / heads of them, one behind the
/// other. causal: a query sees keys up to its own place. log_sums [batch, heads, time] f32 are the
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

/// y = exp(x) / the sum of exp(x), over each of `heads` equal parts of a row [.., heads keys].
/// causal: row (t, b) of a sequence [time, batch, heads keys] sees the keys up to t, and y is 0
/// behind them. x and y are T.
struct Softmax {
  Id x = none, y = none;
  std::int64_t heads = 1;
  bool causal = false;

  static constexpr const char* name = "Softmax";
  static constexpr OpCategory category = OpCategory::normalization;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.writes("y", y);
    see.value("heads", heads);
    see.value("causal", causal);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;

  /// How many of its first keys a row of that shape sees.
  [[nodiscard]] std::int64_t seen(const Shape& shape, std::int64_t row) const;
};

/// dx = y (dy - the sum of dy y), over the same parts. All T.
struct SoftmaxGrad {
  Id y = none, dy = none, dx = none;
  std::int64_t heads = 1;

  static constexpr const char* name = "SoftmaxGrad";
  static constexpr OpCategory category = OpCategory::normalization;
  template <class See>
  void describe(See& see) const {
    see.reads("y", y);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.value("heads", heads);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
