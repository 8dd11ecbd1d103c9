// SPDX-License-Identifier: Apache-2.0
#include "crossover/layers/function_layer.h"

#include <variant>

#include "contexts.h"
#include "crossover/layers/activation_layer.h"

namespace crossover {
namespace {

/// With the slope that products and convolutions know as an activation of theirs.
bool has_fused_form(const Function& function) {
  const auto* leaky = std::get_if<functions::LeakyRelu>(&function);
  return leaky != nullptr && leaky->negative_slope == functions::LeakyRelu().negative_slope;
}

constexpr ActivationLayer fused{Activation::leaky_relu};

}  // namespace

Shape infer(const Function& function, LayerShapes& shapes) {
  if (const auto* held = std::get_if<functions::Hardtanh>(&function)) {
    shapes.require(held->min_val < held->max_val, "min_val is not below max_val");
  }
  return shapes.input();
}

void forward(const Function& function, LayerForward& step) {
  if (has_fused_form(function)) {
    return fused.forward(step);
  }
  step.emit(Map{.x = step.x(), .y = step.y(), .function = function});
}

void backward(const Function& function, LayerBackward& step) {
  if (has_fused_form(function)) {
    return fused.backward(step);
  }
  const Id dx = step.dx();
  if (dx == none) {
    return;
  }
  if (const auto* affine = std::get_if<functions::Affine>(&function)) {  // wherever x is
    step.emit(Map{.x = step.dy(),
                  .y = dx,
                  .function = functions::Affine{.scale = affine->scale, .shift = 0}});
  } else {
    step.emit(MapGrad{.x = step.x(), .dy = step.dy(), .dx = dx, .function = function});
  }
}

}  // namespace crossover
