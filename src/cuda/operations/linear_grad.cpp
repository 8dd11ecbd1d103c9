// SPDX-License-Identifier: Apache-2.0
// A layer's gradient: dx beside dw, or before it where that is the weights themselves. ReLU's
// derivative and the sums for biases are epilogues where the library has them.
#include <variant>

#include "../planning/step_planner.h"
#include "linear_fusion.h"
#include "operations.h"

namespace crossover::cuda {
namespace {

void plan_dx(const LinearGrad& grad, StepPlanner& step) {
  const LinearFusion& fusion = step.fusion(step.at());
  if (!fusion.mask_of) {
    step.emit_product(step.require(dx_form(step, grad, Epilogue::none)), grad.w, grad.dy, grad.dx);
    if (grad.x_activation != Activation::identity) {
      step.emit(ActivateGradLaunch{step.operand(grad.x), step.operand(grad.dx),
                                   step.operand(grad.dx), step.count(grad.dx), grad.x_activation});
    }
    return;
  }
  const Operand mask = step.fusion(*fusion.mask_of).mask;
  if (!fusion.bias_sum_for) {
    step.emit_product(dx_form(step, grad, Epilogue::drelu), grad.w, grad.dy, grad.dx, {}, mask);
    return;
  }
  const Id dbias = std::get<LinearGrad>(step.operations()[*fusion.bias_sum_for]).dbias;
  step.emit_product(dx_form(step, grad, Epilogue::drelu_bias_sum), grad.w, grad.dy, grad.dx,
                    step.operand(dbias), mask);
}

void plan_dw(const LinearGrad& grad, StepPlanner& step) {
  const bool sums = grad.dbias != none && !step.fusion(step.at()).bias_sum_elsewhere;
  if (sums && !grad.accumulate && step.stays(grad.dbias)) {
    const ProductForm form = dw_form(step, grad, Epilogue::b_sum);
    if (step.supports(form)) {
      step.emit_product(form, grad.x, grad.dy, grad.dw, step.operand(grad.dbias));
      return;
    }
  }
  if (sums) {
    step.emit_column_sums(step.operand(grad.dy), step.operand(grad.dbias), step.rows(grad.dy),
                          step.shape(grad.w)[0], grad.accumulate);
  }
  step.emit_product(step.require(dw_form(step, grad, Epilogue::none)), grad.x, grad.dy, grad.dw);
}

}  // namespace

void plan_operation(const LinearGrad& grad, StepPlanner& step) {
  const auto dx = [&] {
    if (grad.dx != none) {
      plan_dx(grad, step);
    }
  };
  const auto dw = [&] { plan_dw(grad, step); };
  if (grad.dw == grad.w) {  // dx reads what dw changes
    dx();
    dw();
  } else {
    step.emit_side_by_side(dx, dw);
  }
}

}  // namespace crossover::cuda
