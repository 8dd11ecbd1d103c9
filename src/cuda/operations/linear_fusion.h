// SPDX-License-Identifier: Apache-2.0
// A layer's products, and which epilogues of theirs take over what other operations of the step
// would do: ReLU masks and sums for biases.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "../kernels/launch.h"
#include "../libraries/forms.h"
#include "crossover/step.h"

namespace crossover::cuda {

class StepPlanner;

/// What the products of one operation do besides.
struct LinearFusion {
  bool writes_mask = false;            ///< Linear
  Operand mask;                        ///< where it writes it
  std::optional<std::size_t> mask_of;  ///< LinearGrad: the Linear whose mask dx's product applies
  std::optional<std::size_t>
      bias_sum_for;                 ///< LinearGrad: the one whose bias gradient dx's product sums
  bool bias_sum_elsewhere = false;  ///< LinearGrad: another product sums its bias gradient
};

/// For each operation of the step.
std::vector<LinearFusion> choose_linear_fusions(const StepPlanner& step);

/// yT [out, batch] = w [out, in] xT [in, batch]; w is its transpose in column-major terms.
ProductForm forward_form(const StepPlanner& step, const Linear& linear, Epilogue epilogue);
/// dwT [in, out] = xT [in, batch] dy [batch, out].
ProductForm dw_form(const StepPlanner& step, const LinearGrad& grad, Epilogue epilogue);
/// dxT [in, batch] = wT [in, out] dyT [out, batch].
ProductForm dx_form(const StepPlanner& step, const LinearGrad& grad, Epilogue epilogue);

/// A ReLU's that writes its mask, with the bias where there is one.
Epilogue masked(const Linear& linear);

}  // namespace crossover::cuda
