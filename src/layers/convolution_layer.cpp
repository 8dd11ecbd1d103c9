// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/convolution_layer.h"

#include <cmath>
#include <string>

#include "contexts.h"

namespace crossover {
namespace {

constexpr std::size_t convolution_weight = 0;
constexpr std::size_t convolution_bias = 1;

}  // namespace

Shape ConvolutionLayer::infer(LayerShapes& shapes) const {
  const std::int64_t in = shapes.image()[1];
  shapes.require(in % groups == 0 && out_channels % groups == 0,
                 "has " + std::to_string(groups) + " groups, which must divide its " +
                     std::to_string(in) + " input and " + std::to_string(out_channels) +
                     " output channels");
  const Shape weights{out_channels, in / groups, window.size.down, window.size.across};
  const auto fan_in = static_cast<double>(weights[1] * window.size.product());
  const Start start{.bound = 1 / std::sqrt(fan_in)};
  shapes.parameter("weight", weights, start);
  if (has_bias) {
    shapes.parameter("bias", {out_channels}, start);
  }
  return shapes.image_behind(window, out_channels);
}

void ConvolutionLayer::forward(LayerForward& step) const {
  step.emit(Convolution{.x = step.x(),
                        .w = step.parameter(convolution_weight),
                        .bias = has_bias ? step.parameter(convolution_bias) : none,
                        .y = step.y(),
                        .window = window});
}

void ConvolutionLayer::backward(LayerBackward& step) const {
  step.emit(ConvolutionGrad{.x = step.x(),
                            .w = step.parameter(convolution_weight),
                            .dy = step.dy(),
                            .dx = step.dx(),
                            .dw = step.gradient(convolution_weight),
                            .dbias = has_bias ? step.gradient(convolution_bias) : none,
                            .window = window});
}

}  // namespace crossover
