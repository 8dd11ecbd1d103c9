// SPDX-License-Identifier: Apache-2.0
#include <variant>

#include "contexts.h"
#include "crossover/layers.h"

namespace crossover {

Shape ActivationLayer::infer(LayerShapes& shapes) const { return shapes.input(); }

void ActivationLayer::forward(LayerForward& step) const {
  step.emit(Activate{.x = step.x(), .y = step.y(), .activation = activation});
}

void ActivationLayer::backward(LayerBackward& step) const {
  if (const Id dx = step.dx(); dx != none) {
    step.emit(ActivateGrad{.at = derivative_takes_input(activation) ? step.x() : step.y(),
                           .dy = step.dy(),
                           .dx = dx,
                           .activation = activation});
  }
}

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

Shape AddLayer::infer(LayerShapes& shapes) const {
  shapes.require(shapes.input(0, 2) == shapes.input(1, 2), "adds values of different shapes");
  return shapes.input(0, 2);
}

void AddLayer::forward(LayerForward& step) const {
  step.emit(Add{.a = step.x(0), .b = step.x(1), .y = step.y()});
}

void AddLayer::backward(LayerBackward& step) const {
  step.pass(0, step.dy());
  step.pass(1, step.dy());
}

Shape MultiplyLayer::infer(LayerShapes& shapes) const {
  const Shape& whole = shapes.input(0, 2);
  const Shape& factor = shapes.input(1, 2);
  shapes.require(factor == whole || is_gate_of(whole, factor),
                 "multiplies by neither a value of the same shape nor a number for all pixels or "
                 "time steps");
  return whole;
}

void MultiplyLayer::forward(LayerForward& step) const {
  step.emit(Multiply{.a = step.x(0), .b = step.x(1), .y = step.y()});
}

void MultiplyLayer::backward(LayerBackward& step) const {
  const Id da = step.dx(0);
  const Id db = step.dx(1);
  if (da != none || db != none) {
    step.emit(MultiplyGrad{.a = step.x(0), .b = step.x(1), .dy = step.dy(), .da = da, .db = db});
  }
}

Shape DropoutLayer::infer(LayerShapes& shapes) const {
  shapes.require(probability >= 0 && probability < 1, "drops with a probability in [0, 1)");
  shapes.state("step", {1}, Type::i32);
  return shapes.input();
}

void DropoutLayer::forward(LayerForward& step) const {
  step.emit(Dropout{.x = step.x(),
                    .y = step.y(),
                    .step = step.state(),
                    .probability = probability,
                    .seed = step.number(),
                    .draws = step.ranks(),
                    .draw = step.rank()});
}

void DropoutLayer::backward(LayerBackward& step) const {
  if (const Id dx = step.dx(); dx != none) {
    step.emit(DropoutGrad{.dy = step.dy(),
                          .dx = dx,
                          .step = step.state(),
                          .probability = probability,
                          .seed = step.number(),
                          .draws = step.ranks(),
                          .draw = step.rank()});
  }
}

}  // namespace crossover
