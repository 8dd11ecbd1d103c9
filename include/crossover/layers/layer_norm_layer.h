// SPDX-License-Identifier: Apache-2.0
// Normalization of rows.
#pragma once

#include "crossover/layer.h"

namespace crossover {

/// [..., width], each row normalized by itself, then times weight [width], which starts at 1, plus
/// bias [width], which starts at 0. Where it `is_rms`, rows are divided by their root mean square,
/// and there is no bias. Without `elementwise_affine` there is neither. Epsilons that go unsaid are
/// PyTorch's, of f32.
struct LayerNormLayer {
  double epsilon = 1e-5;
  bool is_rms = false;
  bool elementwise_affine = true, bias = true;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type(layer.is_rms, {{"layer_norm", false}, {"rms_norm", true}});
    see.number("eps", layer.epsilon, layer.is_rms ? 1.1920928955078125e-07 : 1e-5);
    see.flag("elementwise_affine", layer.elementwise_affine, true);
    if (!layer.is_rms) {
      see.flag("bias", layer.bias, true);
    }
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;

 private:
  [[nodiscard]] bool has_bias() const { return !is_rms && elementwise_affine && bias; }
};

}  // namespace crossover
