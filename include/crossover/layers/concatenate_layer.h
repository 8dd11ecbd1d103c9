// SPDX-License-Identifier: Apache-2.0
// Several values as one.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// Images [batch, channels, height, width] one after another in their channels; values of other
/// shapes in their last dimension. Two or more, which agree in all other dimensions.
struct ConcatenateLayer {
  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& /*layer*/, See& see) {
    see.type("concatenate");
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
