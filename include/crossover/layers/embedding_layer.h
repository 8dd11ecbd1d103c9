// SPDX-License-Identifier: Apache-2.0
// Tokens as vectors.
#pragma once

#include <cstdint>

#include "crossover/layer.h"

namespace crossover {

/// Tokens [batch, time] -> [time, batch, width]: time first, as layers of sequences read it. The
/// table [vocabulary, width] starts uniform in [-1, 1), or, where `scaled_start`, in
/// +- 1 / sqrt(width): so that a product which is tied to it starts like any other.
struct EmbeddingLayer {
  std::int64_t vocabulary;
  std::int64_t width;
  bool scaled_start = false;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("embedding");
    see.size("num_embeddings", layer.vocabulary);
    see.size("embedding_dim", layer.width);
    see.flag("scaled_start", layer.scaled_start, false);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
