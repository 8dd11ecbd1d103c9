// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/batch_norm_layer.h"

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t scale = 0;
constexpr std::size_t shift = 1;
// Of what is saved:
constexpr std::size_t mean = 0;
constexpr std::size_t inverse_deviation = 1;

}  // namespace

Shape BatchNormLayer::infer(LayerShapes& shapes) const {
  const Shape channels{shapes.image()[1]};
  shapes.parameter("scale", channels, {.value = 1}, ReadAs::f32);
  shapes.parameter("shift", channels, {.value = 0}, ReadAs::f32);
  return shapes.image();
}

void BatchNormLayer::forward(LayerForward& step) const {
  const Shape channels = step.tensor(step.parameter(scale)).shape;
  const Id of_mean = step.save("mean", channels, Type::f32);
  const Id of_deviation = step.save("inverse deviation", channels, Type::f32);
  step.emit(BatchNorm{.x = step.x(),
                      .scale = step.parameter(scale),
                      .shift = step.parameter(shift),
                      .y = step.y(),
                      .mean = of_mean,
                      .inverse_deviation = of_deviation,
                      .epsilon = epsilon});
}

void BatchNormLayer::backward(LayerBackward& step) const {
  Id dx = step.dx();
  if (dx == none) {  // the operation computes it all the same
    const Tensor x = step.tensor(step.x());
    dx = step.scratch("dx", x.shape, x.type);
  }
  step.emit(BatchNormGrad{.x = step.x(),
                          .scale = step.parameter(scale),
                          .mean = step.saved(mean),
                          .inverse_deviation = step.saved(inverse_deviation),
                          .dy = step.dy(),
                          .dx = dx,
                          .dscale = step.gradient(scale),
                          .dshift = step.gradient(shift)});
}

}  // namespace crossover
