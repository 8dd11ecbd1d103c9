// SPDX-License-Identifier: Apache-2.0
// Losses, each with its gradient.
#pragma once

#include "crossover/functions.h"
#include "crossover/operation.h"

namespace crossover {

/// loss[run] = mean over all rows of -log softmax(logits)[label], natural logarithm;
/// dlogits = (softmax(logits) - onehot(label)) * scale / rows.
/// logits f32: rows of [classes], which are [batch, classes] with labels [batch], or
/// [time, batch, classes] with labels [batch, time], where the label of row (t, b) is labels[b, t].
/// labels i32, loss [runs] f32, dlogits T in the shape of the logits.
struct SoftmaxCrossEntropy {
  Id logits = none, labels = none, loss = none, dlogits = none;
  /// 1 / k where gradients are accumulated over k batches, times the factor that keeps small
  /// gradients within the range of f16; the loss itself is not scaled.
  double scale = 1;

  static constexpr const char* name = "SoftmaxCrossEntropy";
  static constexpr OpCategory category = OpCategory::loss;
  template <class See>
  void describe(See& see) const {
    see.reads("logits", logits);
    see.reads("labels", labels);
    see.writes("loss", loss);
    see.writes("dlogits", dlogits);
    see.value("scale", scale);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

/// loss[run] = mean over all elements x of the logits, with their targets t, as PyTorch's mse_loss
/// and binary_cross_entropy_with_logits:
/// mse: (x - t)^2; bce: -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)) =
/// max(x, 0) - x t + log(1 + exp(-|x|)).
/// dlogits = scale / elements times 2 (x - t), or sigmoid(x) - t.
/// logits and targets f32 and of one shape, [batch, outputs]; loss [runs] f32, dlogits T in that
/// shape.
struct ElementwiseLoss {
  Id logits = none, targets = none, loss = none, dlogits = none;
  LossFunction function = LossFunction::mse;  ///< mse or bce
  double scale = 1;                           ///< as SoftmaxCrossEntropy's

  static constexpr const char* name = "ElementwiseLoss";
  static constexpr OpCategory category = OpCategory::loss;
  template <class See>
  void describe(See& see) const {
    see.reads("logits", logits);
    see.reads("targets", targets);
    see.writes("loss", loss);
    see.writes("dlogits", dlogits);
    see.value("function", function);
    see.value("scale", scale);
  }
  void check(const Fit& fit) const;
  [[nodiscard]] Cost cost(const Workload& workload) const;
  void execute(ReferenceRun& run) const;
};

}  // namespace crossover
