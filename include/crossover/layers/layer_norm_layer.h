// SPDX-License-Identifier: Apache-2.0
// Layer normalization.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// [..., width], each row normalized by itself, then times weight [width], which starts at 1, plus
/// bias [width], which starts at 0.
struct LayerNormLayer {
  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& /*layer*/, See& see) {
    see.type("layer_norm");
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
