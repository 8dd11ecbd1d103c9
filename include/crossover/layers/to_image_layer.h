// SPDX-License-Identifier: Apache-2.0
// A sequence or a vector as an image, or as a line, which is one of height 1.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/layer.h"
#include "crossover/operations/rearrange.h"

namespace crossover {

/// [time, batch, width] -> [batch, width, height, time / height]: its places are pixels, as of a
/// ToSequenceLayer. With `channels`, a sample [time, width], or a vector, is read row by row as
/// [channels, height, ...], in each of which are whole places.
struct ToImageLayer {
  std::int64_t height = 1;
  std::int64_t channels = 0;  // 0: the width of the sequence

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("to_image");
    see.size("height", layer.height, 1);
    see.size("channels", layer.channels, 0);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;

 private:
  [[nodiscard]] std::vector<CopiedBlock> blocks(const Shape& sequence) const;
};

}  // namespace crossover
