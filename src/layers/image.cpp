// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include "contexts.h"
#include "crossover/layers.h"

namespace crossover {

namespace {

void require_groups(const LayerShapes& shapes, std::int64_t groups, std::int64_t in,
                    std::int64_t out) {
  shapes.require(in % groups == 0 && out % groups == 0,
                 "has " + std::to_string(groups) + " groups, which must divide its " +
                     std::to_string(in) + " input and " + std::to_string(out) + " output channels");
}

/// The weight [.., channels that a number is made of, rows, columns], and maybe a bias.
void declare_weight(LayerShapes& shapes, const Shape& weight, bool has_bias,
                    std::int64_t out_channels) {
  const auto fan_in = static_cast<double>(weight[1] * weight[2] * weight[3]);
  const Start start{.bound = 1 / std::sqrt(fan_in)};
  shapes.parameter("weight", weight, start);
  if (has_bias) {
    shapes.parameter("bias", {out_channels}, start);
  }
}

void pool(LayerForward& step, PoolKind kind, const Window& window = {}) {
  const Shape shape = step.tensor(step.y()).shape;
  step.emit(Pool{.kind = kind,
                 .x = step.x(),
                 .y = step.y(),
                 .where = kind == PoolKind::max ? step.save("where", shape, Type::u8) : none,
                 .window = window});
}

void pool_grad(LayerBackward& step, PoolKind kind, const Window& window = {}) {
  if (const Id dx = step.dx(); dx != none) {
    step.emit(PoolGrad{.kind = kind,
                       .where = kind == PoolKind::max ? step.saved() : none,
                       .dy = step.dy(),
                       .dx = dx,
                       .window = window});
  }
}

/// The pixels that each of the smaller image becomes.
Window repeated(const Pair& factor) { return {.size = factor, .stride = factor}; }

}  // namespace

Shape ConvolutionLayer::infer(LayerShapes& shapes) const {
  const std::int64_t in = shapes.image()[1];
  require_groups(shapes, groups, in, out_channels);
  declare_weight(shapes, {out_channels, in / groups, window.size.down, window.size.across},
                 has_bias, out_channels);
  return shapes.image_behind(window, out_channels);
}

void ConvolutionLayer::forward(LayerForward& step) const {
  step.emit(Convolution{.x = step.x(),
                        .w = step.parameter(weight_at),
                        .bias = has_bias ? step.parameter(bias_at) : none,
                        .y = step.y(),
                        .window = window});
}

void ConvolutionLayer::backward(LayerBackward& step) const {
  step.emit(ConvolutionGrad{.x = step.x(),
                            .w = step.parameter(weight_at),
                            .dy = step.dy(),
                            .dx = step.dx(),
                            .dw = step.gradient(weight_at),
                            .dbias = has_bias ? step.gradient(bias_at) : none,
                            .window = window});
}

Shape TransposedConvolutionLayer::infer(LayerShapes& shapes) const {
  const Shape& before = shapes.image();
  require_groups(shapes, groups, before[1], out_channels);
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
  declare_weight(shapes, {before[1], out_channels / groups, window.size.down, window.size.across},
                 has_bias, out_channels);
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
  step.emit(ConvolutionGrad{.w = step.parameter(weight_at),
                            .dy = step.x(),
                            .dx = step.y(),
                            .window = window,
                            .bias = has_bias ? step.parameter(bias_at) : none});
}

void TransposedConvolutionLayer::backward(LayerBackward& step) const {
  if (const Id dx = step.dx(); dx != none) {
    step.emit(
        Convolution{.x = step.dy(), .w = step.parameter(weight_at), .y = dx, .window = window});
  }
  if (!step.is_trained(weight_at)) {
    return;
  }
  step.emit(ConvolutionGrad{.x = step.dy(),
                            .w = step.parameter(weight_at),
                            .dy = step.x(),
                            .dw = step.gradient(weight_at),
                            .window = window});
  if (has_bias) {
    step.emit(ChannelBiasGrad{.dy = step.dy(), .dbias = step.gradient(bias_at)});
  }
}

template <PoolKind kind>
Shape PoolLayer<kind>::infer(LayerShapes& shapes) const {
  return shapes.image_behind(window, shapes.image()[1]);
}

template <PoolKind kind>
void PoolLayer<kind>::forward(LayerForward& step) const {
  pool(step, kind, window);
}

template <PoolKind kind>
void PoolLayer<kind>::backward(LayerBackward& step) const {
  pool_grad(step, kind, window);
}

template struct PoolLayer<PoolKind::max>;
template struct PoolLayer<PoolKind::average>;

Shape GlobalAveragePoolLayer::infer(LayerShapes& shapes) const {
  return {any_batch, over_time ? shapes.sequence()[2] : shapes.image()[1]};
}
void GlobalAveragePoolLayer::forward(LayerForward& step) const {
  pool(step, PoolKind::global_average);
}
void GlobalAveragePoolLayer::backward(LayerBackward& step) const {
  pool_grad(step, PoolKind::global_average);
}

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
  if (const Id dx = step.dx(); dx != none) {
    step.emit(Pool{.kind = PoolKind::sum, .x = step.dy(), .y = dx, .window = repeated(factor)});
  }
}

Shape InterpolateLayer::infer(LayerShapes& shapes) const {
  Shape shape = shapes.image();
  const auto has_corners = [](std::int64_t before, std::int64_t after) {
    return after > 1 || before == 1;
  };
  shapes.require(
      !align_corners || (has_corners(shape[2], size.down) && has_corners(shape[3], size.across)),
      "aligns the corners of several rows or columns with one");
  shape[2] = size.down;
  shape[3] = size.across;
  return shape;
}

void InterpolateLayer::forward(LayerForward& step) const {
  step.emit(Resample{.x = step.x(), .y = step.y(), .aligned = align_corners});
}

void InterpolateLayer::backward(LayerBackward& step) const {
  if (const Id dx = step.dx(); dx != none) {
    step.emit(Resample{.x = step.dy(), .y = dx, .aligned = align_corners, .transposed = true});
  }
}

}  // namespace crossover
