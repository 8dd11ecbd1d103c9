// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/layer_norm_layer.h"

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t norm_weight = 0;
constexpr std::size_t norm_bias = 1;
// Of what is saved:
constexpr std::size_t row_inverse_deviation = 0;
constexpr std::size_t row_mean = 1;

}  // namespace

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
  step.emit(LayerNorm{.x = step.x(),
                      .weight = elementwise_affine ? step.parameter(norm_weight) : none,
                      .bias = has_bias() ? step.parameter(norm_bias) : none,
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
  step.emit(LayerNormGrad{.x = step.x(),
                          .weight = elementwise_affine ? step.parameter(norm_weight) : none,
                          .mean = is_rms ? none : step.saved(row_mean),
                          .inverse_deviation = step.saved(row_inverse_deviation),
                          .dy = step.dy(),
                          .dx = dx,
                          .dweight = elementwise_affine ? step.gradient(norm_weight) : none,
                          .dbias = has_bias() ? step.gradient(norm_bias) : none});
}

}  // namespace crossover
