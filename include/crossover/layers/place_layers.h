// SPDX-License-Identifier: Apache-2.0
// Places of a sequence by themselves: one in front of it that is trained, and the first or the
// last.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// [time, batch, width] -> [1 + time, batch, width] with a trained vector [1, width] in front,
/// which starts uniform in +- 1 / sqrt(width).
struct ClassTokenLayer {
  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& /*layer*/, See& see) {
    see.type("class_token");
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// [time, batch, width] -> [batch, width].
struct OnePlaceLayer {
  bool is_last = false;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type(layer.is_last, {{"first_place", false}, {"last_place", true}});
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
