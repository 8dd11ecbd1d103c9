// SPDX-License-Identifier: Apache-2.0
// A layer: one product, with bias and ReLU as its epilogue where the library has one. A Gemm: the
// product alone.
#include "../planning/step_planner.h"
#include "linear_fusion.h"
#include "operations.h"

namespace crossover::cuda {
namespace {

void activate_in_place(const Linear& linear, StepPlanner& step) {
  if (linear.activation != Activation::identity) {
    step.emit(ActivateLaunch{step.operand(linear.y), step.operand(linear.y), step.count(linear.y),
                             linear.activation});
  }
}

/// By the epilogue that does most of what comes after the product; false: there is none.
bool plan_with_epilogue(const Linear& linear, StepPlanner& step) {
  const auto take = [&](Epilogue epilogue) {
    const ProductForm form = forward_form(step, linear, epilogue);
    if (!step.supports(form)) {
      return false;
    }
    step.emit_product(form, linear.w, linear.x, linear.y, step.operand(linear.bias));
    return true;
  };
  const bool relu = linear.activation == Activation::relu;
  if (linear.bias == none) {
    return relu && take(Epilogue::relu);
  }
  if (!step.stays(linear.bias)) {
    return false;
  }
  if (relu && take(Epilogue::relu_bias)) {
    return true;
  }
  if (take(Epilogue::bias)) {
    activate_in_place(linear, step);
    return true;
  }
  return false;
}

}  // namespace

void plan_operation(const Linear& linear, StepPlanner& step) {
  LinearFusion& fusion = step.fusion(step.at());
  if (fusion.writes_mask) {
    const ProductForm form = forward_form(step, linear, masked(linear));
    fusion.mask = step.scratch(mask_bytes(form.m, form.n));
    step.emit_product(form, linear.w, linear.x, linear.y, step.operand(linear.bias), fusion.mask);
    return;
  }
  if (plan_with_epilogue(linear, step)) {
    return;
  }
  ProductForm form = forward_form(step, linear, Epilogue::none);
  if (linear.bias == none) {
    step.emit_product(step.require(form), linear.w, linear.x, linear.y);
    activate_in_place(linear, step);
    return;
  }
  Operand sums = step.operand(linear.y);
  if (form.result != Type::f32) {
    sums = step.scratch(step.count(linear.y) * bytes(Type::f32));
    form.result = Type::f32;
    form.alignment_d = step.alignment(sums);
  }
  step.emit(ProductLaunch{
      step.require(form), step.operand(linear.w), step.operand(linear.x), sums, {}, {}});
  step.emit(BiasActivateLaunch{sums, step.operand(linear.bias), step.operand(linear.y),
                               step.rows(linear.y), step.shape(linear.w)[0], linear.activation});
}

/// cT [n, m] = op(b)T [n, k] op(a)T [k, m]: a matrix that is not transposed here is transposed in
/// column-major terms already.
void plan_operation(const Gemm& gemm, StepPlanner& step) {
  const ProductForm form{.m = step.shape(gemm.c)[1],
                         .n = step.shape(gemm.c)[0],
                         .k = step.shape(gemm.a)[gemm.transpose_a ? 0 : 1],
                         .transpose_a = gemm.transpose_b,
                         .transpose_b = gemm.transpose_a,
                         .alignment_a = step.alignment(gemm.b),
                         .alignment_b = step.alignment(gemm.a),
                         .alignment_d = step.alignment(gemm.c),
                         .factors = step.type(gemm.a),
                         .result = step.type(gemm.c)};
  step.emit_product(step.require(form), gemm.b, gemm.a, gemm.c);
}

}  // namespace crossover::cuda
