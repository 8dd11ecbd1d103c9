// SPDX-License-Identifier: Apache-2.0
// What brings numbers to mean zero and variance one: over a batch, a layer, a group of channels.
#pragma once

#include <cstdint>

#include "crossover/activation.h"
#include "crossover/operation.h"

namespace crossover {

/// Which numbers share a mean and a variance. Of images [batch, channels, height, width]:
///   batch   those of a channel, in all images (Ioffe & Szegedy 2015). Running statistics, which
///           only inference reads, are not kept.
///   group   those of a group of neighbouring channels, of one image (Wu & He 2018)
/// Of [..., channels]:
///   layer   those of a row (Ba, Kiros & Hinton 2016)
enum class NormKind { batch, layer, group };

/// y = activation(scale * (x - mean) * inverse_deviation + shift + addend) in training, where
/// inverse_deviation is 1 / sqrt(variance + epsilon), with the biased variance. x, y and addend (or
/// none) are alike, all T; scale and shift [channels], mean and inverse_deviation [channels] of a
/// batch, [...] of a layer, [batch, groups] of groups, all f32. `groups` divides the channels.
///
/// Only a batch has an addend, or ReLU as its activation. Only a layer may lack tensors: without a
/// mean, and then without a shift, the mean counts as 0, so that y = scale x / sqrt(mean square +
/// epsilon) (Zhang & Sennrich 2019); a scale that is none counts as 1, a shift as 0.
struct Norm {
  NormKind kind = NormKind::batch;
  Id x = none, scale = none, shift = none, addend = none;
  Id y = none, mean = none, inverse_deviation = none;
  std::int64_t groups = 1;
  double epsilon = 1e-5;
  Activation activation = Activation::identity;

  static constexpr OpCategory category = OpCategory::normalization;
  [[nodiscard]] const char* name() const;
  template <class See>
  void describe(See& see) const {
    const bool is_layer = kind == NormKind::layer;
    see.reads("x", x);
    see.reads(is_layer ? "weight" : "scale", scale);
    see.reads(is_layer ? "bias" : "shift", shift);
    if (kind == NormKind::batch) {
      see.reads("addend", addend);
    }
    see.writes("y", y);
    see.writes("mean", mean);
    see.writes("inverse_deviation", inverse_deviation);
    if (kind == NormKind::group) {
      see.value("groups", groups);
    }
    see.value("epsilon", epsilon);
    if (kind == NormKind::batch) {
      see.value("activation", activation);
    }
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// Gradients of a Norm from dy + dy_more (or dy alone where that is none), both like its y. With
/// dz = (dy + dy_more) * activation'(y) and x' = (x - mean) * inverse_deviation, for each channel
/// dshift = sum dz and dscale = sum dz x';
/// dx = inverse_deviation * (dz scale - (sum dz scale + x' sum dz scale x') / count), with the sums
/// and the count of the numbers that share a mean; daddend = dz, or none. y may be none where the
/// activation is identity. x, y, dy, dy_more, dx and daddend are T; the others are f32.
///
/// Only a batch has y, dy_more and daddend. Only a layer may lack dx, its mean, whose first sum
/// then counts as 0, a scale, which counts as 1, and with it dscale, and dshift.
struct NormGrad {
  NormKind kind = NormKind::batch;
  Id x = none, scale = none, mean = none, inverse_deviation = none, y = none;
  Id dy = none, dy_more = none;
  Id dx = none, dscale = none, dshift = none, daddend = none;
  std::int64_t groups = 1;
  Activation activation = Activation::identity;

  static constexpr OpCategory category = OpCategory::normalization;
  [[nodiscard]] const char* name() const;
  template <class See>
  void describe(See& see) const {
    const bool is_batch = kind == NormKind::batch;
    const bool is_layer = kind == NormKind::layer;
    see.reads("x", x);
    see.reads(is_layer ? "weight" : "scale", scale);
    see.reads("mean", mean);
    see.reads("inverse_deviation", inverse_deviation);
    if (is_batch) {
      see.reads("y", y);
    }
    see.reads("dy", dy);
    if (is_batch) {
      see.reads("dy_more", dy_more);
    }
    see.writes("dx", dx);
    see.writes(is_layer ? "dweight" : "dscale", dscale);
    see.writes(is_layer ? "dbias" : "dshift", dshift);
    if (is_batch) {
      see.writes("daddend", daddend);
      see.value("activation", activation);
    }
    if (kind == NormKind::group) {
      see.value("groups", groups);
    }
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
