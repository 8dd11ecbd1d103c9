// SPDX-License-Identifier: Apache-2.0
// A residual join.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// The sum of two values of one shape.
struct AddLayer {
  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& /*layer*/, See& see) {
    see.type("add");
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
