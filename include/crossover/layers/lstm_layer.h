// SPDX-License-Identifier: Apache-2.0
// Long short-term memory, and gated recurrent units.
#pragma once

#include <cstdint>

#include "crossover/layer.h"

namespace crossover {

/// Sequences [time, batch, in] -> [time, batch, hidden]. Weights [4 hidden, in] of the inputs and
/// [4 hidden, hidden] of the recurrence, then a bias [4 hidden] of each, start uniform in +- 1 /
/// sqrt(hidden), as PyTorch's do.
struct LstmLayer {
  std::int64_t hidden;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("lstm");
    see.size("hidden_size", layer.hidden);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

/// The same of gated recurrent units, whose weights and biases have 3 hidden rows.
struct GruLayer {
  std::int64_t hidden;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type("gru");
    see.size("hidden_size", layer.hidden);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const;
  void forward(LayerForward& step) const;
  void backward(LayerBackward& step) const;
};

}  // namespace crossover
