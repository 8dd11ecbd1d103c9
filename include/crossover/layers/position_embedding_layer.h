// SPDX-License-Identifier: Apache-2.0
// Places of a sequence as vectors.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// [time, batch, width] plus a vector for each place. Their table [time, width] starts uniform in
/// +- 1 / sqrt(width).
struct PositionEmbeddingLayer {
  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& /*layer*/, See& see) {
    see.type("position_embedding");
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
