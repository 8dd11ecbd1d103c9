// SPDX-License-Identifier: Apache-2.0
// A convolution of images.
#pragma once

#include <cstdint>

#include "crossover/layer.h"
#include "crossover/window.h"

namespace crossover {

/// [batch, in, height, width] -> [batch, out_channels, positions, positions]. Weight [out_channels,
/// in / groups, rows, columns] and bias [out_channels], if it has one, start uniform in +- 1 /
/// sqrt(in / groups * rows * columns), as PyTorch's do. On images of height 1 with windows of one
/// row it is PyTorch's Conv1d.
struct ConvolutionLayer {
  std::int64_t out_channels;
  Window window;
  bool has_bias = true;
  std::int64_t groups = 1;  ///< of channels, each of which sees its own input channels only

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("conv2d");
    see.size("out_channels", layer.out_channels);
    see.size("kernel_size", layer.window.size);
    see.size("stride", layer.window.stride, 1);
    see.count("padding", layer.window.padding, 0);
    see.flag("ceil_mode", layer.window.ceil, false);
    see.flag("bias", layer.has_bias, true);
    see.size("groups", layer.groups, 1);
    see.size("dilation", layer.window.dilation, 1);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
