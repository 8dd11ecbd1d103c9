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
constexpr std::size_t vectors_as_images = 2;

bool are_vectors(const Shape& shape) { return shape.size() == 2; }

Shape as_images(const Shape& vectors) { return {vectors[0], vectors[1], 1, 1}; }

}  // namespace

Shape BatchNormLayer::infer(LayerShapes& shapes) const {
  const Shape& shape = are_vectors(shapes.input()) ? shapes.input() : shapes.image();
  shapes.require(shape.front() == any_batch, "reads images, or vectors of a batch");
  shapes.parameter("scale", {shape[1]}, {.value = 1}, ReadAs::f32);
  shapes.parameter("shift", {shape[1]}, {.value = 0}, ReadAs::f32);
  return shape;
}

void BatchNormLayer::forward(LayerForward& step) const {
  const Shape channels = step.tensor(step.parameter(scale)).shape;
  const Id of_mean = step.save("mean", channels, Type::f32);
  const Id of_deviation = step.save("inverse deviation", channels, Type::f32);
  const Tensor vectors = step.tensor(step.x());
  Id x = step.x();
  Id y = step.y();
  if (are_vectors(vectors.shape)) {
    x = step.save("images", as_images(vectors.shape), vectors.type);
    y = step.save("result as images", as_images(vectors.shape), step.tensor(step.y()).type);
    step.emit(Reshape{.x = step.x(), .y = x});
  }
  step.emit(BatchNorm{.x = x,
                      .scale = step.parameter(scale),
                      .shift = step.parameter(shift),
                      .y = y,
                      .mean = of_mean,
                      .inverse_deviation = of_deviation,
                      .epsilon = epsilon});
  if (y != step.y()) {
    step.emit(Reshape{.x = y, .y = step.y()});
  }
}

void BatchNormLayer::backward(LayerBackward& step) const {
  const Tensor read = step.tensor(step.x());
  const bool has_vectors = are_vectors(read.shape);
  const Shape images = has_vectors ? as_images(read.shape) : read.shape;
  const Id asked = step.dx();
  Id dx = asked;
  if (dx == none || has_vectors) {  // the operation computes it all the same
    dx = step.scratch("dx", images, read.type);
  }
  Id dy = step.dy();
  if (has_vectors) {
    dy = step.scratch("dy", images, read.type);
    step.emit(Reshape{.x = step.dy(), .y = dy});
  }
  step.emit(BatchNormGrad{.x = has_vectors ? step.saved(vectors_as_images) : step.x(),
                          .scale = step.parameter(scale),
                          .mean = step.saved(mean),
                          .inverse_deviation = step.saved(inverse_deviation),
                          .dy = dy,
                          .dx = dx,
                          .dscale = step.gradient(scale),
                          .dshift = step.gradient(shift)});
  if (has_vectors && asked != none) {
    step.emit(Reshape{.x = dx, .y = asked});
  }
}

}  // namespace crossover
