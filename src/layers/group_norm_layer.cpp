// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/group_norm_layer.h"

#include <string>

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t group_norm_scale = 0;
constexpr std::size_t group_norm_shift = 1;
// What is saved:
constexpr std::size_t mean_of_groups = 0;
constexpr std::size_t deviation_of_groups = 1;

}  // namespace

Shape GroupNormLayer::infer(LayerShapes& shapes) const {
  const Shape& images = shapes.image();
  shapes.require(images[1] % groups == 0, "has " + std::to_string(groups) +
                                              " groups, which must divide its " +
                                              std::to_string(images[1]) + " channels");
  shapes.parameter("weight", {images[1]}, {.value = 1}, ReadAs::f32);
  shapes.parameter("bias", {images[1]}, {.value = 0}, ReadAs::f32);
  return images;
}

void GroupNormLayer::forward(LayerForward& step) const {
  const Shape statistics{step.tensor(step.x()).shape[0], groups};
  const Id mean = step.save("mean", statistics, Type::f32);
  const Id inverse_deviation = step.save("inverse deviation", statistics, Type::f32);
  step.emit(GroupNorm{.x = step.x(),
                      .scale = step.parameter(group_norm_scale),
                      .shift = step.parameter(group_norm_shift),
                      .y = step.y(),
                      .mean = mean,
                      .inverse_deviation = inverse_deviation,
                      .groups = groups,
                      .epsilon = epsilon});
}

void GroupNormLayer::backward(LayerBackward& step) const {
  Id dx = step.dx();
  if (dx == none) {  // the operation computes it all the same
    const Tensor x = step.tensor(step.x());
    dx = step.scratch("dx", x.shape, x.type);
  }
  step.emit(GroupNormGrad{.x = step.x(),
                          .scale = step.parameter(group_norm_scale),
                          .mean = step.saved(mean_of_groups),
                          .inverse_deviation = step.saved(deviation_of_groups),
                          .dy = step.dy(),
                          .dx = dx,
                          .dscale = step.gradient(group_norm_scale),
                          .dshift = step.gradient(group_norm_shift),
                          .groups = groups});
}

}  // namespace crossover
