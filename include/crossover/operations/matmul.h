// SPDX-License-Identifier: Apache-2.0
// Products of two sequences, sample by sample and head by head.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/operation.h"

namespace crossover {

/// y = scale op(a) op(b) for each sample and head, where op transposes if its flag is set. a, b and
/// y are sequences [time, batch, heads numbers] or, of one place, [batch, heads numbers]; of a
/// sample and a head each is a matrix of its places and its numbers: a [m, k], b [k, n], y [m, n].
/// All T. Gradients are products of the same kind: da = scale dy op(b)T, db = scale op(a)T dy.
struct Matmul {
  Id a = none, b = none, y = none;
  std::int64_t heads = 1;
  bool transpose_a = false, transpose_b = false;
  double scale = 1;

  static constexpr const char* name = "Matmul";
  static constexpr OpCategory category = OpCategory::product;
  template <class See>
  void describe(See& see) const {
    see.reads("a", a);
    see.reads("b", b);
    see.writes("y", y);
    see.value("heads", heads);
    see.value("transpose_a", transpose_a);
    see.value("transpose_b", transpose_b);
    see.value("scale", scale);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  /// None that could be measured by itself: those of a sample are small.
  [[nodiscard]] static std::vector<OpProduct> products(const Workload& /*workload*/) { return {}; }
  void execute(ReferenceRun& run) const;
};

/// A sequence as matrices [rows, columns], one for each sample and head: where the first number of
/// the next sample or head lies, and steps from row to row and from column to column.
struct MatricesOf {
  MatricesOf(const Shape& shape, std::int64_t heads, bool transposed);

  std::int64_t rows = 0, columns = 0;
  std::int64_t samples = 0, sample_step = 0, head_step = 0;
  std::int64_t row_step = 0, column_step = 0;
};

}  // namespace crossover
