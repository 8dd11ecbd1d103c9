// SPDX-License-Identifier: Apache-2.0
// The maximum or the mean of each window of an image.
#pragma once

#include "crossover/layer.h"
#include "crossover/window.h"

namespace crossover {

/// [batch, channels, height, width] -> [batch, channels, positions, positions].
struct MaxPoolLayer {
  Window window;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("max_pool2d");
    see.size("kernel_size", layer.window.size);
    see.size("stride", layer.window.stride, layer.window.size);
    see.count("padding", layer.window.padding, 0);
    see.flag("ceil_mode", layer.window.ceil, false);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// The same with the mean; zeros of the padding count (PyTorch's count_include_pad).
struct AveragePoolLayer {
  Window window;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("avg_pool2d");
    see.size("kernel_size", layer.window.size);
    see.size("stride", layer.window.stride, layer.window.size);
    see.count("padding", layer.window.padding, 0);
    see.flag("ceil_mode", layer.window.ceil, false);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
