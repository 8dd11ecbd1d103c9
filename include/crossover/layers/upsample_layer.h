// SPDX-License-Identifier: Apache-2.0
// Larger images, each pixel repeated.
#pragma once

#include "crossover/layer.h"
#include "crossover/window.h"

namespace crossover {

/// [batch, channels, height, width] -> [batch, channels, factor height, factor width], a factor for
/// each: each pixel is the nearest of the smaller image (PyTorch's Upsample with mode="nearest").
struct UpsampleLayer {
  Pair factor = 1;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("upsample");
    see.size("scale_factor", layer.factor);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
