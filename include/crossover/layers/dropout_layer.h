// SPDX-License-Identifier: Apache-2.0
// Dropout.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// Elementwise, of any shape: drops each element with that probability, others of each layer and
/// step. Counts its steps in a state.
struct DropoutLayer {
  double probability;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("dropout");
    see.number("p", layer.probability);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
