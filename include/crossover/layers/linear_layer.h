// SPDX-License-Identifier: Apache-2.0
// A fully connected layer.
#pragma once

#include <cstdint>

#include "crossover/layer.h"

namespace crossover {

/// [..., in] -> [..., out_features], with bias. Weight [out_features, in] and bias [out_features]
/// start uniform in +- 1 / sqrt(in), as PyTorch's do.
struct LinearLayer {
  std::int64_t out_features;

  static constexpr bool result_may_be_f32 = true;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("linear");
    see.size("out_features", layer.out_features);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
