// SPDX-License-Identifier: Apache-2.0
// Matrix products: fully connected layers, products by themselves, and products of sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/activation.h"
#include "crossover/operation.h"

namespace crossover {

/// y = activation(x wT + bias).  x [batch, in], w [out, in], bias [out] or none, y [batch, out].
/// x and w are T; y is T or f32, and the bias of y's type.
struct Linear {
  Id x = none, w = none, bias = none, y = none;
  Activation activation = Activation::identity;

  static constexpr const char* name = "Linear";
  static constexpr OpCategory category = OpCategory::product;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("w", w);
    see.reads("bias", bias);
    see.writes("y", y);
    see.value("activation", activation);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  [[nodiscard]] std::vector<OpProduct> products(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Gradients of a Linear with identity activation, from dy [batch, out]:
/// dw (+)= dyT x, dbias (+)= column sums of dy, dx = (dy w) * x_activation'.
/// x_activation is the activation that made x, its derivative taken from x itself; identity: no
/// factor. dx, dw and dbias may be none. (+)= adds where `accumulate` is set and overwrites
/// otherwise. dx comes first: dw may be w itself, and dbias the layer's bias, which are then
/// updated in place. x, w, dy and dx are T; dw and dbias are f32.
struct LinearGrad {
  Id x = none, w = none, dy = none, dx = none, dw = none, dbias = none;
  Activation x_activation = Activation::identity;
  bool accumulate = false;

  static constexpr const char* name = "LinearGrad";
  static constexpr OpCategory category = OpCategory::product;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("w", w);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.writes("dw", dw);
    see.writes("dbias", dbias);
    if (accumulate) {
      see.reads("dw", dw);
      see.reads("dbias", dbias);
    }
    see.value("x_activation", x_activation);
    see.value("accumulate", accumulate);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  [[nodiscard]] std::vector<OpProduct> products(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// For measuring, a product by itself: c = op(a) op(b), where op transposes if its flag is set:
/// op(a) [m, k], op(b) [k, n], c [m, n]. c is neither a nor b. a and b are T; c is T or f32.
struct Gemm {
  Id a = none, b = none, c = none;
  bool transpose_a = false, transpose_b = false;

  static constexpr const char* name = "Gemm";
  static constexpr OpCategory category = OpCategory::product;
  template <class See>
  void describe(See& see) const {
    see.reads("a", a);
    see.reads("b", b);
    see.writes("c", c);
    see.value("transpose_a", transpose_a);
    see.value("transpose_b", transpose_b);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  [[nodiscard]] std::vector<OpProduct> products(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

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
