// SPDX-License-Identifier: Apache-2.0
// A transposed convolution of images, which makes them larger.
#pragma once

#include <cstdint>

#include "crossover/layer.h"
#include "crossover/window.h"

namespace crossover {

/// [batch, in, height, width] -> [batch, out_channels, ...]: what gradients with respect to the
/// images of a convolution with that window are to the gradients of its result. Of a height comes
/// stride (height - 1) + extent(window) - 2 padding + output_padding. Weight [in, out_channels /
/// groups, rows, columns] and bias [out_channels], if it has one, start uniform in +- 1 /
/// sqrt(out_channels / groups * rows * columns), as those of PyTorch's ConvTranspose2d do.
struct TransposedConvolutionLayer {
  std::int64_t out_channels;
  Window window;
  Pair output_padding = 0;  ///< below the stride: rows and columns that its division drops
  bool has_bias = true;
  std::int64_t groups = 1;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("conv_transpose2d");
    see.size("out_channels", layer.out_channels);
    see.size("kernel_size", layer.window.size);
    see.size("stride", layer.window.stride, 1);
    see.count("padding", layer.window.padding, 0);
    see.count("output_padding", layer.output_padding, 0);
    see.flag("bias", layer.has_bias, true);
    see.size("groups", layer.groups, 1);
    see.size("dilation", layer.window.dilation, 1);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
