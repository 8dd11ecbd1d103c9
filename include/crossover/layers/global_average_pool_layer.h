// SPDX-License-Identifier: Apache-2.0
// The mean of each channel of an image, or of a sequence over time.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// [batch, channels, height, width] -> [batch, channels]; where `over_time`, [time, batch, width]
/// -> [batch, width].
struct GlobalAveragePoolLayer {
  bool over_time = false;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type(layer.over_time, {{"global_avg_pool2d", false}, {"mean_over_time", true}});
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
