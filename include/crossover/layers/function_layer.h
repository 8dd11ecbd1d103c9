// SPDX-License-Identifier: Apache-2.0
// A function of each number by itself as a layer.
#pragma once

#include "crossover/layer.h"
#include "crossover/operations/map.h"

namespace crossover {

Shape infer(const Function& function, LayerShapes& shapes);
void forward(const Function& function, LayerForward& step);
void backward(const Function& function, LayerBackward& step);

/// Elementwise, of any shape.
template <class Of>
struct FunctionLayer {
  Of function;

  static constexpr bool result_may_be_f32 = false;
  template <class Self, class See>
  static void describe(Self& layer, See& see) {
    see.type(Of::name);
    Of::describe(layer.function, see);
  }
  [[nodiscard]] Shape infer(LayerShapes& shapes) const {
    return crossover::infer(function, shapes);
  }
  void forward(LayerForward& step) const { crossover::forward(function, step); }
  void backward(LayerBackward& step) const { crossover::backward(function, step); }
};

}  // namespace crossover
