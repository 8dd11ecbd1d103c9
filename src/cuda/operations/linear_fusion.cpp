// SPDX-License-Identifier: Apache-2.0
#include "linear_fusion.h"

#include <algorithm>
#include <variant>

#include "../planning/step_planner.h"

namespace crossover::cuda {
namespace {

bool contains(const std::vector<Id>& ids, Id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

bool writes(const Op& op, Id id) { return contains(operands(op).writes, id); }

bool touches(const Op& op, Id id) { return contains(operands(op).reads, id) || writes(op, id); }

/// Operations after `first` and before `last` leave the tensor alone.
bool unchanged(const StepPlanner& step, Id id, std::size_t first, std::size_t last) {
  for (std::size_t i = first + 1; i < last; ++i) {
    if (writes(step.operations()[i], id)) {
      return false;
    }
  }
  return true;
}

/// The Linear whose mask the gradient's dx can be multiplied by. A mask pays only where both ends
/// can use it.
std::optional<std::size_t> choose_mask(const StepPlanner& step, std::size_t at,
                                       const LinearGrad& grad) {
  if (grad.dx == none || grad.x_activation != Activation::relu) {
    return {};
  }
  for (std::size_t j = at; j-- > 0;) {
    const auto* linear = std::get_if<Linear>(&step.operations()[j]);
    if (linear == nullptr || linear->y != grad.x) {
      continue;
    }
    const bool fits = linear->activation == Activation::relu && unchanged(step, grad.x, j, at) &&
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
                                           const std::vector<LinearFusion>& fusions, std::size_t at,
                                           const LinearGrad& grad) {
  if (!step.stays(grad.dbias) || grad.accumulate || step.type(grad.dbias) != step.type(grad.dy)) {
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
    if (touches(op, grad.dbias) || writes(op, grad.dy)) {
      return {};
    }
  }
  return {};
}

}  // namespace

std::vector<LinearFusion> choose_linear_fusions(const StepPlanner& step) {
  std::vector<LinearFusion> fusions(step.operations().size());
  for (std::size_t i = 0; i < fusions.size(); ++i) {
    const auto* grad = std::get_if<LinearGrad>(&step.operations()[i]);
    if (grad == nullptr) {
      continue;
    }
    if (const auto linear = choose_mask(step, i, *grad)) {
      fusions[i].mask_of = linear;
      fusions[*linear].writes_mask = true;
    }
    if (const auto maker = choose_bias_sum(step, fusions, i, *grad)) {
      fusions[*maker].bias_sum_for = i;
      fusions[i].bias_sum_elsewhere = true;
    }
  }
  return fusions;
}

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

Epilogue masked(const Linear& linear) {
  return linear.bias != none ? Epilogue::relu_mask_bias : Epilogue::relu_mask;
}

}  // namespace crossover::cuda
