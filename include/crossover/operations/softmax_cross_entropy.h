// SPDX-License-Identifier: Apache-2.0
// The loss of a classifier, with its gradient.
#pragma once

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

}  // namespace crossover
