// SPDX-License-Identifier: Apache-2.0
// Batch normalization in training, and its gradients (Ioffe & Szegedy 2015). Running statistics,
// which only inference reads, are not kept.
#pragma once

#include "crossover/activation.h"
#include "crossover/operation.h"

namespace crossover {

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

}  // namespace crossover
