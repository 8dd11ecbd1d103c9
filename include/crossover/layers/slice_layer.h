// SPDX-License-Identifier: Apache-2.0
// A part of a value: one of several inputs in a row, or what a layer gives for one of its readers.
#pragma once

#include <cstdint>

#include "crossover/layer.h"

namespace crossover {

/// Channels `from` to `to` (not with it) of an image, else so of the last dimension; `over_time`:
/// places of a sequence [time, batch, width]. Of tokens [batch, places] these are places, and what
/// it gives are tokens.
struct SliceLayer {
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool over_time = false;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("slice");
    see.count("from", layer.from, 0);
    see.size("to", layer.to);
    see.flag("over_time", layer.over_time, false);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;

 private:
  [[nodiscard]] std::size_t axis_of(const Shape& shape) const;
};

}  // namespace crossover
