// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/global_average_pool_layer.h"

#include "contexts.h"

namespace crossover {

Shape GlobalAveragePoolLayer::infer(LayerShapes& shapes) const {
  return {any_batch, over_time ? shapes.sequence()[2] : shapes.image()[1]};
}

void GlobalAveragePoolLayer::forward(LayerForward& step) const {
  step.emit(GlobalAveragePool{.x = step.x(), .y = step.y()});
}

void GlobalAveragePoolLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(GlobalAveragePoolGrad{.dy = step.dy(), .dx = dx});
  }
}

}  // namespace crossover
