// SPDX-License-Identifier: Apache-2.0
// A fully connected layer, and its gradients.
#pragma once

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
/// factor. dx and dbias may be none. (+)= adds where `accumulate` is set and overwrites otherwise.
/// dx comes first: dw may be w itself, and dbias the layer's bias, which are then updated in place.
/// x, w, dy and dx are T; dw and dbias are f32.
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

}  // namespace crossover
