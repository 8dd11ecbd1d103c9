// SPDX-License-Identifier: Apache-2.0
// What attention consists of, for networks that have it otherwise: products of two sequences, and
// the softmax of their rows.
#pragma once

#include <cstdint>

#include "crossover/layer.h"

namespace crossover {

/// Of each sample and head, a [time, batch, heads k] times b [k, batch, heads n], or `transpose` b
/// [n, batch, heads k]: [time, batch, heads n], times `scale`. A vector [batch, width] is a
/// sequence of one place; where a is one, so is the result.
struct MatmulLayer {
  bool transpose = false;
  std::int64_t heads = 1;
  double scale = 1;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("matmul");
    see.flag("transpose", layer.transpose, false);
    see.size("num_heads", layer.heads, 1);
    see.number("scale", layer.scale, 1.0);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// Of each of `heads` equal parts of the last dimension; causal: of a sequence [time, batch, heads
/// places], place t sees those up to itself.
struct SoftmaxLayer {
  std::int64_t heads = 1;
  bool causal = false;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("softmax");
    see.size("num_heads", layer.heads, 1);
    see.flag("causal", layer.causal, false);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
