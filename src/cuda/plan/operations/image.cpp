// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "../step_planner.h"
#include "operations.h"

namespace crossover::cuda {

// ---- Convolutions, with bias and ReLU fused where the library has a plan with them.

namespace {

ConvolutionForm form_of(ConvolutionPass pass, const Window& window, Id x, Id w, Id y,
                        const StepPlanner& step) {
  const Shape& image = step.shape(x);
  const Shape& result = step.shape(y);
  return {.pass = pass,
          .batch = image[0],
          .in = image[1],
          .height = image[2],
          .width = image[3],
          .out = result[1],
          .positions_down = result[2],
          .positions_across = result[3],
          .size = window.size,
          .stride = window.stride,
          .padding = window.padding,
          .dilation = window.dilation,
          .groups = image[1] / step.shape(w)[1],
          .alignment = std::min({step.alignment(x), step.alignment(w), step.alignment(y)}),
          .type = step.type(pass == ConvolutionPass::forward ? x : y),
          .result = step.type(pass == ConvolutionPass::forward ? y
                              : pass == ConvolutionPass::dx    ? x
                                                               : w),
          .layout = step.layout(x)};
}

}  // namespace

void plan_operation(const Convolution& op, StepPlanner& step) {
  ConvolutionForm form = form_of(ConvolutionPass::forward, op.window, op.x, op.w, op.y, step);
  const bool relu = op.activation == Activation::relu;
  // cuDNN lists the same fused plans for addresses of any alignment. Whether they run there nobody
  // has seen.
  constexpr std::int64_t least_alignment_of_fused = 16;
  const auto take = [&](bool with_bias, bool with_relu) {
    form.bias = with_bias;
    form.relu = with_relu;
    if (with_bias) {
      form.alignment = std::min(form.alignment, step.alignment(op.bias));
    }
    if ((form.is_fused() && form.alignment < least_alignment_of_fused) || !step.supports(form)) {
      return false;
    }
    step.emit(ConvolutionLaunch{form, step.operand(op.x), step.operand(op.w), step.operand(op.y),
                                with_bias ? step.operand(op.bias) : Operand{}});
    return true;
  };
  const bool has_bias = op.bias != none;
  if ((has_bias || relu) && take(has_bias, relu)) {
    if (!relu && op.activation != Activation::identity) {
      step.emit(
          ActivateLaunch{step.operand(op.y), step.operand(op.y), step.count(op.y), op.activation});
    }
    return;
  }
  if (!take(false, false)) {
    static_cast<void>(step.require(form));  // throws
  }
  if (has_bias) {
    step.emit(ChannelBiasLaunch{step.operand(op.y), step.operand(op.bias), step.by_channel(op.y),
                                op.activation});
  } else if (op.activation != Activation::identity) {
    step.emit(
        ActivateLaunch{step.operand(op.y), step.operand(op.y), step.count(op.y), op.activation});
  }
}

void plan_operation(const ConvolutionGrad& op, StepPlanner& step) {
  const auto dx = [&] {
    if (op.dx != none) {
      const ConvolutionForm form =
          form_of(ConvolutionPass::dx, op.window, op.dx, op.w, op.dy, step);
      step.emit(ConvolutionLaunch{
          step.require(form), step.operand(op.dx), step.operand(op.w), step.operand(op.dy), {}});
    }
    if (op.bias != none) {
      step.emit(
          ChannelBiasLaunch{step.operand(op.dx), step.operand(op.bias), step.by_channel(op.dx)});
    }
  };
  const auto of_parameters = [&] {
    if (op.dbias != none) {
      step.emit_channel_sums(op.dy, step.operand(op.dbias));
    }
    if (op.dw == none) {
      return;
    }
    const ConvolutionForm form = form_of(ConvolutionPass::dw, op.window, op.x, op.dw, op.dy, step);
    step.emit(ConvolutionLaunch{
        step.require(form), step.operand(op.x), step.operand(op.dw), step.operand(op.dy), {}});
  };
  step.emit_side_by_side(dx, of_parameters);
}

void plan_operation(const ChannelBiasGrad& op, StepPlanner& step) {
  step.emit_channel_sums(op.dy, step.operand(op.dbias));
}

// ---- Pool

namespace {

/// Of images x and results y.
Pooling pooling_of(PoolKind kind, const Window& window, Id x, Id y, const StepPlanner& step) {
  const Shape& image = step.shape(x);
  const Shape& result = step.shape(y);
  if (step.count(x) > std::numeric_limits<std::int32_t>::max()) {
    throw Unsupported("the GPU backend pools at most 2^31 - 1 elements, not " +
                      crossover::to_string(step.shape(x)));
  }
  return {.kind = kind,
          .batch = image[0],
          .channels = image[1],
          .height = image[2],
          .width = image[3],
          .positions_down = result[2],
          .positions_across = result[3],
          .size = window.size,
          .stride = window.stride,
          .padding = window.padding,
          .layout = step.layout(x)};
}

/// The launch takes images; a sequence is one that lies channels-last, of which time steps are the
/// pixels.
template <class Launched>
Launched averaged(const Operand& from, const Operand& to, Id x, const StepPlanner& step) {
  const Shape& shape = step.shape(x);
  if (shape.size() == 3) {
    return {from, to, 1, shape[0], shape[1] * shape[2], Layout::channels_last};
  }
  return {from, to, shape[0], shape[2] * shape[3], shape[1], step.layout(x)};
}

}  // namespace

void plan_operation(const Pool& op, StepPlanner& step) {
  const Operand x = step.operand(op.x);
  const Operand y = step.operand(op.y);
  if (op.kind == PoolKind::global_average) {
    return step.emit(averaged<GlobalAveragePoolLaunch>(x, y, op.x, step));
  }
  step.emit(
      PoolLaunch{x, y, step.operand(op.where), pooling_of(op.kind, op.window, op.x, op.y, step)});
}

void plan_operation(const PoolGrad& op, StepPlanner& step) {
  const Operand dy = step.operand(op.dy);
  const Operand dx = step.operand(op.dx);
  if (op.kind == PoolKind::global_average) {
    return step.emit(averaged<GlobalAveragePoolGradLaunch>(dy, dx, op.dx, step));
  }
  step.emit(PoolGradLaunch{step.operand(op.made), step.operand(op.where), dy, dx,
                           pooling_of(op.kind, op.window, op.dx, op.dy, step), op.x_activation});
}

void plan_operation(const Resample& op, StepPlanner& step) {
  const Shape& from = step.shape(op.images());
  const Shape& to = step.shape(op.result());
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  // ResampledAxis counts to twice the product of both extents.
  if (step.count(op.x) > most || step.count(op.y) > most || 4 * from[2] * to[2] > most ||
      4 * from[3] * to[3] > most) {
    throw Unsupported("the GPU backend resamples in 32 bits, too few for " +
                      crossover::to_string(from) + " to " + crossover::to_string(to));
  }
  const auto axis = [&](std::size_t dimension) {
    return ResampledAxis<int>::of(static_cast<int>(from[dimension]),
                                  static_cast<int>(to[dimension]), op.aligned);
  };
  step.emit(ResampleLaunch{step.operand(op.x), step.operand(op.y), from[0], from[1], axis(2),
                           axis(3), op.transposed, step.layout(op.x)});
}

}  // namespace crossover::cuda
