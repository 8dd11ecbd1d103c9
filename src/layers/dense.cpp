// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "contexts.h"
#include "crossover/layers.h"

namespace crossover {

Shape LinearLayer::infer(LayerShapes& shapes) const {
  Shape result = shapes.input();
  const std::int64_t in = result.back();
  shapes.require(in != any_batch, "reads single numbers, not vectors");
  const Start start{.bound = 1 / std::sqrt(static_cast<double>(in))};
  if (tied == no_layer) {
    shapes.parameter("weight", {out_features, in}, start);
  } else {
    shapes.require(!has_bias, "is tied to an embedding, which has no bias: leave that out");
    shapes.tied_parameter(tied, {out_features, in});
  }
  if (has_bias) {
    shapes.parameter("bias", {out_features}, start, ReadAs::result);
  }
  result.back() = out_features;
  return result;
}

void LinearLayer::forward(LayerForward& step) const {
  step.emit(Linear{.x = step.x(),
                   .w = step.parameter(weight_at),
                   .bias = has_bias ? step.parameter(bias_at) : none,
                   .y = step.y()});
}

void LinearLayer::backward(LayerBackward& step) const {
  step.emit(LinearGrad{.x = step.x(),
                       .w = step.parameter(weight_at),
                       .dy = step.dy(),
                       .dx = step.dx(),
                       .dw = step.accumulated_gradient(weight_at),
                       .dbias = has_bias ? step.accumulated_gradient(bias_at) : none,
                       .accumulate = step.is_trained(weight_at) && step.adds_to(weight_at)});
}

namespace {

/// As a sequence: a vector has one place.
Shape in_time(const LayerShapes& shapes, const Shape& shape) {
  const bool is_vector = shape.size() == 2 && shape[0] == any_batch;
  shapes.require(is_vector || (shape.size() == 3 && shape[1] == any_batch),
                 "reads vectors, or sequences of them, time first");
  return is_vector ? Shape{1, any_batch, shape[1]} : shape;
}

void require_heads(const LayerShapes& shapes, std::int64_t width, std::int64_t heads) {
  shapes.require(width % heads == 0, "divides a width of " + std::to_string(width) + " into " +
                                         std::to_string(heads) + " heads");
}

}  // namespace

Shape MatmulLayer::infer(LayerShapes& shapes) const {
  const Shape& left = shapes.input(0, 2);
  const Shape a = in_time(shapes, left);
  const Shape b = in_time(shapes, shapes.input(1, 2));
  require_heads(shapes, a[2], heads);
  require_heads(shapes, b[2], heads);
  const std::int64_t summed = a[2] / heads;
  const std::int64_t of_b = transpose ? b[2] / heads : b[0];
  shapes.require(summed == of_b,
                 "multiplies " + std::to_string(summed) + " numbers by " + std::to_string(of_b));
  Shape result = left;
  result.back() = transpose ? heads * b[0] : b[2];
  return result;
}

void MatmulLayer::forward(LayerForward& step) const {
  step.emit(Matmul{.a = step.x(0),
                   .b = step.x(1),
                   .y = step.y(),
                   .heads = heads,
                   .transpose_b = transpose,
                   .scale = scale});
}

void MatmulLayer::backward(LayerBackward& step) const {
  if (const Id da = step.dx(0); da != none) {
    step.emit(Matmul{.a = step.dy(),
                     .b = step.x(1),
                     .y = da,
                     .heads = heads,
                     .transpose_b = !transpose,
                     .scale = scale});
  }
  if (const Id db = step.dx(1); db != none) {
    step.emit(Matmul{.a = transpose ? step.dy() : step.x(0),
                     .b = transpose ? step.x(0) : step.dy(),
                     .y = db,
                     .heads = heads,
                     .transpose_a = true,
                     .scale = scale});
  }
}

Shape SoftmaxLayer::infer(LayerShapes& shapes) const {
  const Shape& shape = causal ? shapes.sequence() : shapes.input();
  in_time(shapes, shape);
  require_heads(shapes, shape.back(), heads);
  return shape;
}

void SoftmaxLayer::forward(LayerForward& step) const {
  step.emit(Softmax{.x = step.x(), .y = step.y(), .heads = heads, .causal = causal});
}

void SoftmaxLayer::backward(LayerBackward& step) const {
  if (const Id dx = step.dx(); dx != none) {
    step.emit(SoftmaxGrad{.y = step.y(), .dy = step.dy(), .dx = dx, .heads = heads});
  }
}

}  // namespace crossover
