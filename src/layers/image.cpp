// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include "contexts.h"
#include "crossover/layers.h"

namespace crossover {

// ---- Convolution

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

// ---- Transposed convolution

namespace {

constexpr std::size_t transposed_weight = 0;
constexpr std::size_t transposed_bias = 1;

}  // namespace

Shape TransposedConvolutionLayer::infer(LayerShapes& shapes) const {
  const Shape& before = shapes.image();
  shapes.require(before[1] % groups == 0 && out_channels % groups == 0,
                 "has " + std::to_string(groups) + " groups, which must divide its " +
                     std::to_string(before[1]) + " input and " + std::to_string(out_channels) +
                     " output channels");
  constexpr double most_rows = 1U << 31U;
  const auto is_small = [](const Slide& slide, std::int64_t size) {
    return static_cast<double>(slide.stride) * static_cast<double>(size) +
               static_cast<double>(slide.dilation) * static_cast<double>(slide.size) <
           most_rows;
  };
  shapes.require(is_small(window.down(), before[2]) && is_small(window.across(), before[3]),
                 "gives images of more than 2^31 rows or columns");
  const auto fits = [](const Slide& slide, std::int64_t more) {
    return slide.padding < extent(slide) && more < slide.stride;
  };
  shapes.require(
      fits(window.down(), output_padding.down) && fits(window.across(), output_padding.across),
      "has a padding of " + to_string(window.padding) + " and an output_padding of " +
          to_string(output_padding) + ", which must be below its window's extent and its stride");
  const Shape weights{before[1], out_channels / groups, window.size.down, window.size.across};
  const auto fan_in = static_cast<double>(weights[1] * window.size.product());
  const Start start{.bound = 1 / std::sqrt(fan_in)};
  shapes.parameter("weight", weights, start);
  if (has_bias) {
    shapes.parameter("bias", {out_channels}, start);
  }
  const auto behind = [](const Slide& slide, std::int64_t more, std::int64_t size) {
    return slide.stride * (size - 1) + extent(slide) - 2 * slide.padding + more;
  };
  Shape result{any_batch, out_channels, behind(window.down(), output_padding.down, before[2]),
               behind(window.across(), output_padding.across, before[3])};
  shapes.require(result[2] > 0 && result[3] > 0, "has a padding of " + to_string(window.padding) +
                                                     ", which leaves nothing of the image");
  return result;
}

void TransposedConvolutionLayer::forward(LayerForward& step) const {
  step.emit(ConvolutionGrad{.w = step.parameter(transposed_weight),
                            .dy = step.x(),
                            .dx = step.y(),
                            .window = window,
                            .bias = has_bias ? step.parameter(transposed_bias) : none});
}

void TransposedConvolutionLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(Convolution{
        .x = step.dy(), .w = step.parameter(transposed_weight), .y = dx, .window = window});
  }
  step.emit(ConvolutionGrad{.x = step.dy(),
                            .w = step.parameter(transposed_weight),
                            .dy = step.x(),
                            .dw = step.gradient(transposed_weight),
                            .window = window});
  if (has_bias) {
    step.emit(ChannelBiasGrad{.dy = step.dy(), .dbias = step.gradient(transposed_bias)});
  }
}

// ---- Pool

namespace {

constexpr std::size_t saved_where = 0;  // the first of what is saved

void pool(LayerForward& step, PoolKind kind, const Window& window = {}) {
  const Shape shape = step.tensor(step.y()).shape;
  step.emit(Pool{.kind = kind,
                 .x = step.x(),
                 .y = step.y(),
                 .where = kind == PoolKind::max ? step.save("where", shape, Type::u8) : none,
                 .window = window});
}

void pool_grad(LayerBackward& step, PoolKind kind, const Window& window = {}) {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(PoolGrad{.kind = kind,
                       .where = kind == PoolKind::max ? step.saved(saved_where) : none,
                       .dy = step.dy(),
                       .dx = dx,
                       .window = window});
  }
}

/// The pixels that each of the smaller image becomes.
Window repeated(const Pair& factor) { return {.size = factor, .stride = factor}; }

}  // namespace

Shape MaxPoolLayer::infer(LayerShapes& shapes) const {
  return shapes.image_behind(window, shapes.image()[1]);
}
void MaxPoolLayer::forward(LayerForward& step) const { pool(step, PoolKind::max, window); }
void MaxPoolLayer::backward(LayerBackward& step) const { pool_grad(step, PoolKind::max, window); }

Shape AveragePoolLayer::infer(LayerShapes& shapes) const {
  return shapes.image_behind(window, shapes.image()[1]);
}
void AveragePoolLayer::forward(LayerForward& step) const { pool(step, PoolKind::average, window); }
void AveragePoolLayer::backward(LayerBackward& step) const {
  pool_grad(step, PoolKind::average, window);
}

Shape GlobalAveragePoolLayer::infer(LayerShapes& shapes) const {
  return {any_batch, over_time ? shapes.sequence()[2] : shapes.image()[1]};
}
void GlobalAveragePoolLayer::forward(LayerForward& step) const {
  pool(step, PoolKind::global_average);
}
void GlobalAveragePoolLayer::backward(LayerBackward& step) const {
  pool_grad(step, PoolKind::global_average);
}

// ---- Upsample

Shape UpsampleLayer::infer(LayerShapes& shapes) const {
  Shape shape = shapes.image();
  constexpr std::int64_t most_rows = std::int64_t{1} << 31U;
  shapes.require(factor.down <= most_rows / shape[2] && factor.across <= most_rows / shape[3],
                 "gives images of more than 2^31 rows or columns");
  shape[2] *= factor.down;
  shape[3] *= factor.across;
  return shape;
}

void UpsampleLayer::forward(LayerForward& step) const {
  step.emit(
      PoolGrad{.kind = PoolKind::sum, .dy = step.x(), .dx = step.y(), .window = repeated(factor)});
}

void UpsampleLayer::backward(LayerBackward& step) const {
  const Id dx = step.dx();
  if (dx != none) {
    step.emit(Pool{.kind = PoolKind::sum, .x = step.dy(), .y = dx, .window = repeated(factor)});
  }
}

}  // namespace crossover
