// SPDX-License-Identifier: Apache-2.0
// Multi-head self-attention, without the products before and behind it.
#pragma once

#include <cstdint>

#include "crossover/layer.h"

namespace crossover {

/// Queries, keys and values [time, batch, 3 width], in this order as one linear layer gives them,
/// -> [time, batch, width]. causal: no place sees a later one.
struct AttentionLayer {
  std::int64_t heads;
  bool causal = false;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("attention");
    see.size("num_heads", layer.heads);
    see.flag("causal", layer.causal, false);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
