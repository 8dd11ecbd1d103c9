// SPDX-License-Identifier: Apache-2.0
// What brings numbers to mean zero and variance one: over a batch, a layer, a group of channels.
#pragma once

#include <cstdint>

#include "crossover/activation.h"
#include "crossover/operation.h"

namespace crossover {

// ---- Batch normalization in training, and its gradients (Ioffe & Szegedy 2015). Running
// statistics, which only inference reads, are not kept.

/// y = activation(scale * (x - mean) * inverse_deviation + shift + addend) for each channel, where
/// mean is that of the channel over batch, height and width, and inverse_deviation 1 /
/// sqrt(variance + epsilon), with the biased variance. x, y, addend (or none) [batch, channels,
/// height, width], all T; scale, shift, mean and inverse_deviation [channels], all f32. activation
/// is identity or ReLU.
struct BatchNorm {
  Id x = none, scale = none, shift = none, addend = none;
  Id y = none, mean = none, inverse_deviation = none;
  double epsilon = 1e-5;
  Activation activation = Activation::identity;

  static constexpr const char* name = "BatchNorm";
  static constexpr OpCategory category = OpCategory::normalization;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("scale", scale);
    see.reads("shift", shift);
    see.reads("addend", addend);
    see.writes("y", y);
    see.writes("mean", mean);
    see.writes("inverse_deviation", inverse_deviation);
    see.value("epsilon", epsilon);
    see.value("activation", activation);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Gradients of a BatchNorm from dy + dy_more (or dy alone where that is none), both like its y.
/// With dz = (dy + dy_more) * activation'(y) and x' = (x - mean) * inverse_deviation:
/// dshift = sum dz; dscale = sum dz x';
/// dx = scale * inverse_deviation * (dz - (dshift + x' dscale) / count), where count is the
/// elements of a channel; daddend = dz, or none. y may be none where the activation is identity. x,
/// y, dy, dy_more, dx and daddend are T; the others are f32.
struct BatchNormGrad {
  Id x = none, scale = none, mean = none, inverse_deviation = none, y = none;
  Id dy = none, dy_more = none;
  Id dx = none, dscale = none, dshift = none, daddend = none;
  Activation activation = Activation::identity;

  static constexpr const char* name = "BatchNormGrad";
  static constexpr OpCategory category = OpCategory::normalization;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("scale", scale);
    see.reads("mean", mean);
    see.reads("inverse_deviation", inverse_deviation);
    see.reads("y", y);
    see.reads("dy", dy);
    see.reads("dy_more", dy_more);
    see.writes("dx", dx);
    see.writes("dscale", dscale);
    see.writes("dshift", dshift);
    see.writes("daddend", daddend);
    see.value("activation", activation);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

// ---- Layer normalization, and its gradients (Ba, Kiros & Hinton 2016).

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

// ---- Group normalization of images, and its gradients (Wu & He 2018).

/// y = scale * (x - mean) * inverse_deviation + shift, where mean is that of a group of
/// neighbouring channels of an image over height and width, and inverse_deviation 1 / sqrt(variance
/// + epsilon), with the biased variance. x and y [batch, channels, height, width], both T; scale
/// and shift [channels], mean and inverse_deviation [batch, groups], all f32. `groups` divides the
/// channels.
struct GroupNorm {
  Id x = none, scale = none, shift = none;
  Id y = none, mean = none, inverse_deviation = none;
  std::int64_t groups = 1;
  double epsilon = 1e-5;

  static constexpr const char* name = "GroupNorm";
  static constexpr OpCategory category = OpCategory::normalization;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("scale", scale);
    see.reads("shift", shift);
    see.writes("y", y);
    see.writes("mean", mean);
    see.writes("inverse_deviation", inverse_deviation);
    see.value("groups", groups);
    see.value("epsilon", epsilon);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Gradients of a GroupNorm from dy, like its y. With x' = (x - mean) * inverse_deviation and
/// dz = dy * scale: dshift = sum dy and dscale = sum dy x' of each channel;
/// dx = inverse_deviation * (dz - (sum dz + x' sum dz x') / count), with the sums and the count of
/// the group of an image. x, dy and dx are T; the others are f32.
struct GroupNormGrad {
  Id x = none, scale = none, mean = none, inverse_deviation = none, dy = none;
  Id dx = none, dscale = none, dshift = none;
  std::int64_t groups = 1;

  static constexpr const char* name = "GroupNormGrad";
  static constexpr OpCategory category = OpCategory::normalization;
  template <class See>
  void describe(See& see) const {
    see.reads("x", x);
    see.reads("scale", scale);
    see.reads("mean", mean);
    see.reads("inverse_deviation", inverse_deviation);
    see.reads("dy", dy);
    see.writes("dx", dx);
    see.writes("dscale", dscale);
    see.writes("dshift", dshift);
    see.value("groups", groups);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
