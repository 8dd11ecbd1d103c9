// SPDX-License-Identifier: Apache-2.0
// Zeros around an image, and what is cut off.
#pragma once

#include <cstdint>

#include "crossover/layer.h"
#include "crossover/tensor.h"

namespace crossover {

/// So many zeros on each side of [batch, channels, height, width]: columns on the left and on the
/// right, rows on top and at the bottom, channels in front and at the back. Below zero so many are
/// cut off instead.
struct PadLayer {
  std::int64_t left = 0, right = 0, top = 0, bottom = 0, front = 0, back = 0;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("pad");
    see.any_count("left", layer.left, 0);
    see.any_count("right", layer.right, 0);
    see.any_count("top", layer.top, 0);
    see.any_count("bottom", layer.bottom, 0);
    see.any_count("front", layer.front, 0);
    see.any_count("back", layer.back, 0);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;

 private:
  [[nodiscard]] Shape before() const { return {0, front, top, left}; }
};

}  // namespace crossover
