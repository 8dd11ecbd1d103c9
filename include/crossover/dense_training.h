// SPDX-License-Identifier: Apache-2.0
// A Workload that trains a chain of Linear layers, seen whole: what executions that do not go
// operation by operation are made from.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "crossover/step.h"

namespace crossover {

/// y = activation(x wT + bias), and its gradients from dy, that of the sum before the activation.
/// x [batch, in], w [out, in], bias [out], y and dy [batch, out].
struct DenseLayer {
  std::int64_t in = 0, out = 0;
  Id x = none, w = none, bias = none, y = none;
  Activation activation = Activation::identity;
  Activation x_activation = Activation::identity;  ///< which made x: the one of the layer before
  /// Of an activation that is an operation of its own, since its result does not tell its
  /// derivative (derivative_takes_input()): x wT + bias. Likewise, where that is x_activation: dy
  /// w.
  Id sum = none, product = none;
  /// dx is (dy w) times the derivative of x_activation, which makes it the dy of the layer before;
  /// none in the first layer. Where the step updates in place, dw is w and dbias is the bias.
  Id dy = none, dx = none, dw = none, dbias = none;
};

/// What the step's loss operation says; `wanted` are its labels or its targets.
struct DenseLoss {
  LossFunction function = LossFunction::cross_entropy;
  Id logits = none, wanted = none, loss = none, dlogits = none;
  double scale = 1;
};

/// A step on one batch.
struct DenseStep {
  std::int64_t batch = 0;
  std::vector<DenseLayer> layers;
  DenseLoss loss;
  std::optional<Update> update;

  [[nodiscard]] Id inputs() const { return layers.front().x; }
  [[nodiscard]] std::int64_t classes() const { return layers.back().out; }
  /// No optimizer: each gradient, which the loss's `scale` makes the update, is added to its
  /// parameter (fuse_update()).
  [[nodiscard]] bool updates_in_place() const { return !update; }
};

/// The steps of a Workload in f32 that fuse() made, and maybe fuse_update(); all have the same
/// layers. Throws Unsupported, with what stands in the way, where it trains anything else, or adds
/// up gradients over several batches.
std::vector<DenseStep> dense_training(const Workload& workload);

/// The layers of a forward_pass() in f32 that fuse() made. Throws Unsupported, with what stands in
/// the way, where it is no chain of Linear layers.
std::vector<DenseLayer> dense_pass(const Workload& workload);

}  // namespace crossover
