// SPDX-License-Identifier: Apache-2.0
// A gate.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// The product of two values. The second has the shape of the first, or one number for all pixels
/// of an image, [batch, channels] or [batch, channels, 1, 1], or for all time steps of a sequence,
/// [batch, width].
struct MultiplyLayer {
  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& /*layer*/, See& see) {
    see.type("multiply");
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
