// SPDX-License-Identifier: Apache-2.0
// What training in 16 bits asks of a plan.
#pragma once

#include <vector>

#include "crossover/step.h"

namespace crossover::cuda {

// ---- Gradients of weights in the type in which cuDNN has them.

/// Where a convolution reads 16 bits, cuDNN writes the gradient of its weights in 16 bits alone.
/// The same computation with such gradients: an optimizer reads them as they are; where anything
/// else does, as where gradients of several steps are added up, a Cast to f32 follows. Tensors keep
/// their numbers.
Workload narrow_gradients(Workload workload);

// ---- Which parameters have a copy in 16 bits that their optimizer writes, so that no step has to
// cast them.

struct CopiedParameter {
  Id parameter = none;  ///< f32
  Id copy = none;       ///< the activation of 16 bits that Casts made of it
};

/// Those that nothing but optimizers writes, with a copy that each step that uses it casts first,
/// reads before it updates the parameter, and does not leave as a result.
std::vector<CopiedParameter> choose_parameter_copies(const Workload& workload);

}  // namespace crossover::cuda
