// SPDX-License-Identifier: Apache-2.0
#include "crossover/operations/dense.h"

#include <algorithm>
#include <variant>

#include "../step_planner.h"
#include "operations.h"

namespace crossover::cuda {

// ---- Linear fusion

namespace {

/// yT [out, batch] = w [out, in] xT [in, batch]; w is its transpose in column-major terms.
ProductForm forward_form(const StepPlanner& step, const Linear& linear, Epilogue epilogue) {
  return {.m = step.shape(linear.w)[0],
          .n = step.rows(linear.x),
          .k = step.shape(linear.w)[1],
          .transpose_a = true,
          .epilogue = epilogue,
          .alignment_a = step.alignment(linear.w),
          .alignment_b = step.alignment(linear.x),
          .alignment_d = step.alignment(linear.y),
          .factors = step.type(linear.x),
          .result = step.type(linear.y)};
}

/// dwT [in, out] = xT [in, batch] dy [batch, out].
ProductForm dw_form(const StepPlanner& step, const LinearGrad& grad, Epilogue epilogue) {
  return {.m = step.shape(grad.w)[1],
          .n = step.shape(grad.w)[0],
          .k = step.rows(grad.x),
          .transpose_b = true,
          .accumulate = grad.accumulate,
          .epilogue = epilogue,
          .alignment_a = step.alignment(grad.x),
          .alignment_b = step.alignment(grad.dy),
          .alignment_d = step.alignment(grad.dw),
          .factors = step.type(grad.x),
          .result = step.type(grad.dw)};
}

/// dxT [in, batch] = wT [in, out] dyT [out, batch].
ProductForm dx_form(const StepPlanner& step, const LinearGrad& grad, Epilogue epilogue) {
  return {.m = step.shape(grad.w)[1],
          .n = step.rows(grad.x),
          .k = step.shape(grad.w)[0],
          .epilogue = epilogue,
          .alignment_a = step.alignment(grad.w),
          .alignment_b = step.alignment(grad.dy),
          .alignment_d = step.alignment(grad.dx),
          .factors = step.type(grad.x),
          .result = step.type(grad.dx)};
}

/// A ReLU's that writes its mask, with the bias where there is one.
Epilogue masked(const Linear& linear) {
  return linear.bias != none ? Epilogue::relu_mask_bias : Epilogue::relu_mask;
}

bool contains(const std::vector<Id>& ids, Id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

/// Operations after `first` and before `last` leave the tensor alone. `used`: by each operation.
bool unchanged(const std::vector<Operands>& used, Id id, std::size_t first, std::size_t last) {
  for (std::size_t i = first + 1; i < last; ++i) {
    if (contains(used[i].writes, id)) {
      return false;
    }
  }
  return true;
}

/// The Linear whose mask the gradient's dx can be multiplied by. A mask pays only where both ends
/// can use it.
std::optional<std::size_t> choose_mask(const StepPlanner& step, const std::vector<Operands>& used,
                                       std::size_t at, const LinearGrad& grad) {
  if (grad.dx == none || grad.x_activation != Activation::relu) {
    return {};
  }
  for (std::size_t j = at; j-- > 0;) {
    const auto* linear = std::get_if<Linear>(&step.operations()[j]);
    if (linear == nullptr || linear->y != grad.x) {
      continue;
    }
    const bool fits = linear->activation == Activation::relu && unchanged(used, grad.x, j, at) &&
                      (linear->bias == none || step.stays(linear->bias)) &&
                      step.supports(forward_form(step, *linear, masked(*linear))) &&
                      step.supports(dx_form(step, grad, Epilogue::drelu));
    return fits ? std::optional(j) : std::nullopt;
  }
  return {};
}

/// The LinearGrad whose dx is the gradient's dy: the product that makes it with a mask can sum it
/// as well, if nobody else needs the bias gradient's old value or overwrites what was summed, and
/// the sums have the type of dy.
std::optional<std::size_t> choose_bias_sum(const StepPlanner& step,
                                           const std::vector<Operands>& used,
                                           const std::vector<LinearFusion>& fusions, std::size_t at,
                                           const LinearGrad& grad) {
  if (grad.dbias == none || !step.stays(grad.dbias) || grad.accumulate ||
      step.type(grad.dbias) != step.type(grad.dy)) {
    return {};
  }
  for (std::size_t j = at; j-- > 0;) {
    const Op& op = step.operations()[j];
    const auto* maker = std::get_if<LinearGrad>(&op);
    if (maker != nullptr && maker->dx == grad.dy) {
      const bool fits =
          fusions[j].mask_of && step.supports(dx_form(step, *maker, Epilogue::drelu_bias_sum));
      return fits ? std::optional(j) : std::nullopt;
    }
    if (contains(used[j].reads, grad.dbias) || contains(used[j].writes, grad.dbias) ||
        contains(used[j].writes, grad.dy)) {
      return {};
    }
  }
  return {};
}

}  // namespace

std::vector<LinearFusion> choose_linear_fusions(const StepPlanner& step) {
  std::vector<LinearFusion> fusions(step.operations().size());
  std::vector<Operands> used;  // asked once, as the choices look back over many operations
  used.reserve(fusions.size());
  for (std::size_t i = 0; i < fusions.size(); ++i) {
    used.push_back(operands(step.operations()[i]));
  }
  for (std::size_t i = 0; i < fusions.size(); ++i) {
    const auto* grad = std::get_if<LinearGrad>(&step.operations()[i]);
    if (grad == nullptr) {
      continue;
    }
    if (const auto linear = choose_mask(step, used, i, *grad)) {
      fusions[i].mask_of = linear;
      fusions[*linear].writes_mask = true;
    }
    if (const auto maker = choose_bias_sum(step, used, fusions, i, *grad)) {
      fusions[*maker].bias_sum_for = i;
      fusions[i].bias_sum_elsewhere = true;
    }
  }
  return fusions;
}

// ---- A layer: one product, with bias and ReLU as its epilogue where the library has one. A Gemm:
// the product alone.

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

// ---- A layer's gradient: dx beside dw, or before it where that is the weights themselves. ReLU's
// derivative and the sums for biases are epilogues where the library has them.

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
  const auto dw = [&] {
    if (grad.dw != none) {
      plan_dw(grad, step);
    }
  };
  if (grad.dw == grad.w) {  // dx reads what dw changes
    dx();
    dw();
  } else {
    step.emit_side_by_side(dx, dw);
  }
}

// ---- Products of sequences by kernels of ours, in any precision, as attention is: cuBLASLt is
// asked for no batched products.

void plan_operation(const Matmul& op, StepPlanner& step) {
  const auto steps = [&](Id id, bool transposed) {
    const MatricesOf of(step.shape(id), op.heads, transposed);
    return MatrixSteps{of.sample_step, of.head_step, of.row_step, of.column_step};
  };
  const MatricesOf left(step.shape(op.a), op.heads, op.transpose_a);
  const MatricesOf result(step.shape(op.y), op.heads, false);
  step.emit(MatmulLaunch{.a = step.operand(op.a),
                         .b = step.operand(op.b),
                         .y = step.operand(op.y),
                         .sizes = {.a = steps(op.a, op.transpose_a),
                                   .b = steps(op.b, op.transpose_b),
                                   .y = steps(op.y, false),
                                   .samples = result.samples,
                                   .heads = op.heads,
                                   .m = result.rows,
                                   .n = result.columns,
                                   .k = left.columns},
                         .scale = static_cast<float>(op.scale)});
}

}  // namespace crossover::cuda
