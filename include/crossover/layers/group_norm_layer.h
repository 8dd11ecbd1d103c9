// SPDX-License-Identifier: Apache-2.0
// Group normalization of images.
#pragma once

#include <cstdint>

#include "crossover/layer.h"

namespace crossover {

/// The shape of the images; groups of neighbouring channels of each image by themselves. The weight
/// [channels] starts at 1, the bias [channels] at 0, as those of PyTorch's GroupNorm.
struct GroupNormLayer {
  std::int64_t groups;  ///< divide the channels
  double epsilon = 1e-5;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("group_norm");
    see.size("num_groups", layer.groups);
    see.number("eps", layer.epsilon, 1e-5);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
