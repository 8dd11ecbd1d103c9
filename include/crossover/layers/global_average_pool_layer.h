// SPDX-License-Identifier: Apache-2.0
// The mean of each channel of an image.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// [batch, channels, height, width] -> [batch, channels].
struct GlobalAveragePoolLayer {
  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& /*layer*/, See& see) {
    see.type("global_avg_pool2d");
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
