// SPDX-License-Identifier: Apache-2.0
// Batch normalization of images and of vectors, in training.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// [batch, channels, height, width] or [batch, channels], each channel normalized over the others,
/// then times scale [channels], which starts at 1, plus shift [channels], which starts at 0.
struct BatchNormLayer {
  double epsilon = 1e-5;  ///< added to the variance

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("batch_norm");
    see.number("eps", layer.epsilon, 1e-5);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
