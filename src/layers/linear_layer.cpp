// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/linear_layer.h"

#include <cmath>

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t linear_weight = 0;
constexpr std::size_t linear_bias = 1;

}  // namespace

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
                   .w = step.parameter(linear_weight),
                   .bias = has_bias ? step.parameter(linear_bias) : none,
                   .y = step.y()});
}

void LinearLayer::backward(LayerBackward& step) const {
  step.emit(LinearGrad{.x = step.x(),
                       .w = step.parameter(linear_weight),
                       .dy = step.dy(),
                       .dx = step.dx(),
                       .dw = step.accumulated_gradient(linear_weight),
                       .dbias = has_bias ? step.accumulated_gradient(linear_bias) : none,
                       .accumulate = step.adds_to(linear_weight)});
}

}  // namespace crossover
