// SPDX-License-Identifier: Apache-2.0
// Each sample as one row.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// [batch, ...] -> [batch, values of a sample], row by row.
struct FlattenLayer {
  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& /*layer*/, See& see) {
    see.type("flatten");
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
