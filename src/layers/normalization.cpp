// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "contexts.h"
#include "crossover/layers.h"

namespace crossover {

namespace {

// Of what is saved of a batch and of groups:
constexpr std::size_t saved_mean = 0;
constexpr std::size_t saved_inverse_deviation = 1;
constexpr std::size_t vectors_as_images = 2;
// Of what is saved of rows, where the mean may be missing:
constexpr std::size_t row_inverse_deviation = 0;
constexpr std::size_t row_mean = 1;

bool are_vectors(const Shape& shape) { return shape.size() == 2; }

Shape as_images(const Shape& vectors) { return {vectors[0], vectors[1], 1, 1}; }

}  // namespace

Shape BatchNormLayer::infer(LayerShapes& shapes) const {
  const Shape& shape = are_vectors(shapes.input()) ? shapes.input() : shapes.image();
  shapes.require(shape.front() == any_batch, "reads images, or vectors of a batch");
  if (!shapes.trains()) {  // neither is what would do nothing
    shapes.parameter("factor", {shape[1], 1, 1, 1}, {.bound = 0.5, .value = 2});
    shapes.parameter("offset", {shape[1]}, {.bound = 0.1});
    return shape;
  }
  shapes.parameter("scale", {shape[1]}, {.value = 1}, ReadAs::f32);
  shapes.parameter("shift", {shape[1]}, {.value = 0}, ReadAs::f32);
  return shape;
}

void BatchNormLayer::forward(LayerForward& step) const {
  Id of_mean = none;
  Id of_deviation = none;
  if (step.trains()) {
    const Shape channels = step.tensor(step.parameter(weight_at)).shape;
    of_mean = step.save("mean", channels, Type::f32);
    of_deviation = step.save("inverse deviation", channels, Type::f32);
  }
  const Tensor vectors = step.tensor(step.x());
  Id x = step.x();
  Id y = step.y();
  if (are_vectors(vectors.shape)) {
    x = step.save("images", as_images(vectors.shape), vectors.type);
    y = step.save("result as images", as_images(vectors.shape), step.tensor(step.y()).type);
    step.emit(Reshape{.x = step.x(), .y = x});
  }
  if (step.trains()) {
    step.emit(Norm{.x = x,
                   .scale = step.parameter(weight_at),
                   .shift = step.parameter(bias_at),
                   .y = y,
                   .mean = of_mean,
                   .inverse_deviation = of_deviation,
                   .epsilon = epsilon});
  } else {
    step.emit(Convolution{
        .x = x, .w = step.parameter(weight_at), .bias = step.parameter(bias_at), .y = y});
  }
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
  step.emit(NormGrad{.x = has_vectors ? step.saved(vectors_as_images) : step.x(),
                     .scale = step.parameter(weight_at),
                     .mean = step.saved(saved_mean),
                     .inverse_deviation = step.saved(saved_inverse_deviation),
                     .dy = dy,
                     .dx = dx,
                     .dscale = step.gradient_or_scratch(weight_at),
                     .dshift = step.gradient_or_scratch(bias_at)});
  if (has_vectors && asked != none) {
    step.emit(Reshape{.x = dx, .y = asked});
  }
}

Shape LayerNormLayer::infer(LayerShapes& shapes) const {
  const Shape& rows = shapes.input();
  shapes.require(rows.back() != any_batch, "reads single numbers, not vectors");
  if (elementwise_affine) {
    shapes.parameter("weight", {rows.back()}, {.value = 1}, ReadAs::f32);
  }
  if (has_bias()) {
    shapes.parameter("bias", {rows.back()}, {.value = 0}, ReadAs::f32);
  }
  return rows;
}

void LayerNormLayer::forward(LayerForward& step) const {
  Shape rows = step.tensor(step.x()).shape;
  rows.pop_back();
  const Id inverse_deviation = step.save("inverse deviation", rows, Type::f32);
  const Id mean = is_rms ? none : step.save("mean", rows, Type::f32);
  step.emit(Norm{.kind = NormKind::layer,
                 .x = step.x(),
                 .scale = elementwise_affine ? step.parameter(weight_at) : none,
                 .shift = has_bias() ? step.parameter(bias_at) : none,
                 .y = step.y(),
                 .mean = mean,
                 .inverse_deviation = inverse_deviation,
                 .epsilon = epsilon});
}

void LayerNormLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx == none && !elementwise_affine) {
    return;
  }
  step.emit(NormGrad{.kind = NormKind::layer,
                     .x = step.x(),
                     .scale = elementwise_affine ? step.parameter(weight_at) : none,
                     .mean = is_rms ? none : step.saved(row_mean),
                     .inverse_deviation = step.saved(row_inverse_deviation),
                     .dy = step.dy(),
                     .dx = dx,
                     .dscale = elementwise_affine ? step.gradient_or_scratch(weight_at) : none,
                     .dshift = has_bias() ? step.gradient_or_scratch(bias_at) : none});
}

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
  step.emit(Norm{.kind = NormKind::group,
                 .x = step.x(),
                 .scale = step.parameter(weight_at),
                 .shift = step.parameter(bias_at),
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
  step.emit(NormGrad{.kind = NormKind::group,
                     .x = step.x(),
                     .scale = step.parameter(weight_at),
                     .mean = step.saved(saved_mean),
                     .inverse_deviation = step.saved(saved_inverse_deviation),
                     .dy = step.dy(),
                     .dx = dx,
                     .dscale = step.gradient_or_scratch(weight_at),
                     .dshift = step.gradient_or_scratch(bias_at),
                     .groups = groups});
}

}  // namespace crossover
