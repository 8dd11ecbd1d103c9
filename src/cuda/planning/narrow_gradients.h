// SPDX-License-Identifier: Apache-2.0
// Gradients of weights in the type in which cuDNN has them.
#pragma once

#include "crossover/step.h"

namespace crossover::cuda {

/// Where a convolution reads 16 bits, cuDNN writes the gradient of its weights in 16 bits alone.
/// The same computation with such gradients: an optimizer reads them as they are; where anything
/// else does, as where gradients of several steps are added up, a Cast to f32 follows. Tensors keep
/// their numbers.
Workload narrow_gradients(Workload workload);

}  // namespace crossover::cuda
