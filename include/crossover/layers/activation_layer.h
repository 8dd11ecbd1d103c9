// SPDX-License-Identifier: Apache-2.0
// An activation as a layer.
#pragma once

#include "crossover/activation.h"
#include "crossover/layer.h"

namespace crossover {

/// Elementwise, of any shape.
struct ActivationLayer {
  Activation activation;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type(layer.activation, named_activations);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
