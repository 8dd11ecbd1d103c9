// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/activation_layer.h"

#include "contexts.h"

namespace crossover {

Shape ActivationLayer::infer(LayerShapes& shapes) const { return shapes.input(); }

void ActivationLayer::forward(LayerForward& step) const {
  step.emit(Activate{.x = step.x(), .y = step.y(), .activation = activation});
}

void ActivationLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(ActivateGrad{.at = derivative_takes_input(activation) ? step.x() : step.y(),
                           .dy = step.dy(),
                           .dx = dx,
                           .activation = activation});
  }
}

}  // namespace crossover
