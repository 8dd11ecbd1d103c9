// SPDX-License-Identifier: Apache-2.0
// A fully connected layer.
#pragma once

#include <cstdint>

#include "crossover/layer.h"

namespace crossover {

/// [..., in] -> [..., out_features]. Weight [out_features, in] and bias [out_features] start
/// uniform in +- 1 / sqrt(in), as PyTorch's do. `tied` to an embedding before it: its table
/// [out_features, in] is the weight, which both train; without bias.
struct LinearLayer {
  std::int64_t out_features;
  bool has_bias = true;
  LayerNumber tied = no_layer;

  static constexpr bool result_may_be_f32 = true;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("linear");
    see.size("out_features", layer.out_features);
    see.layer("tied", layer.tied);
    see.flag("bias", layer.has_bias, layer.tied == no_layer);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// One whose weight is an embedding's table.
inline LinearLayer tied_linear(std::int64_t out_features, LayerNumber embedding) {
  return {.out_features = out_features, .has_bias = false, .tied = embedding};
}

}  // namespace crossover
