// SPDX-License-Identifier: Apache-2.0
// Layer normalization, and its gradients (Ba, Kiros & Hinton 2016).
#pragma once

#include "crossover/operation.h"

namespace crossover {

/// y = weight * (x - mean) * inverse_deviation + bias for each row, where mean is that of the row
/// and inverse_deviation 1 / sqrt(variance + epsilon), with the biased variance. Without a mean,
/// which is then none as the bias is, it counts as 0: y = weight x / sqrt(mean square + epsilon)
/// (Zhang & Sennrich 2019). A weight that is none counts as 1, a bias as 0. x and y [..., width],
/// both T; weight and bias [width], mean and inverse_deviation [...], all f32.
struct LayerNorm {
  Id x = none, weight = none, bias = none;
  Id y = none, mean = none, inverse_deviation = none;
  double epsilon = 1e-5;

  static constexpr const char* name = "LayerNorm";
  static constexpr OpCategory category = OpCategory::normalization;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("weight", weight);
    see.reads("bias", bias);
    see.writes("y", y);
    see.writes("mean", mean);
    see.writes("inverse_deviation", inverse_deviation);
    see.value("epsilon", epsilon);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Gradients of a LayerNorm from dy, like its y. With x' = (x - mean) * inverse_deviation and
/// dz = dy * weight: dbias = sum dy and dweight = sum dy x' over all rows;
/// dx = inverse_deviation * (dz - (sum dz + x' sum dz x') / width), with the sums of its row; sum
/// dz counts as 0 without a mean, where dbias is none. A weight that is none counts as 1, and
/// dweight and dbias are then none. dx and dbias may be none. x, dy and dx are T; the others are
/// f32.
struct LayerNormGrad {
  Id x = none, weight = none, mean = none, inverse_deviation = none, dy = none;
  Id dx = none, dweight = none, dbias = none;

  static constexpr const char* name = "LayerNormGrad";
  static constexpr OpCategory category = OpCategory::normalization;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("weight", weight);
    see.reads("mean", mean);
    see.reads("inverse_deviation", inverse_deviation);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.writes("dweight", dweight);
    see.writes("dbias", dbias);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
