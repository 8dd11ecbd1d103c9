// SPDX-License-Identifier: Apache-2.0
// The pixels of an image as a sequence.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// [batch, channels, height, width] -> [height * width, batch, channels], row by row of the image.
struct ToSequenceLayer {
  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& /*layer*/, See& see) {
    see.type("to_sequence");
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
