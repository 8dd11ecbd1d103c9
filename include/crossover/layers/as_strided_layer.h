// SPDX-License-Identifier: Apache-2.0
// Any numbers of each sample in any order, by steps: transposed, every second, repeated.
#pragma once

#include "crossover/layer.h"
#include "crossover/operations/rearrange.h"

namespace crossover {

/// torch.as_strided of each sample: its number (i, j, ...) is number storage_offset + i stride[0] +
/// j stride[1] + ... of the sample before, counted row by row (of a sequence: place by place). A
/// stride below 0 goes backwards. No two of `size` may meet, but those whose stride is 0: these
/// repeat what they read, and their gradients are added up. `shape` is how the numbers lie: {width}
/// of a vector, {time, width} of a sequence, {channels, height, width} of an image.
struct AsStridedLayer {
  Shape shape, size, stride;
  std::int64_t storage_offset = 0;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("as_strided");
    see.sizes("shape", layer.shape);
    see.sizes("size", layer.size);
    see.steps("stride", layer.stride);
    see.count("storage_offset", layer.storage_offset, 0);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
