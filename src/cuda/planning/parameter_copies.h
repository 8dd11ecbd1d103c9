// SPDX-License-Identifier: Apache-2.0
// Which parameters have a copy in 16 bits that their optimizer writes, so that no step has to cast
// them.
#pragma once

#include <vector>

#include "crossover/step.h"

namespace crossover::cuda {

struct CopiedParameter {
  Id parameter = none;  ///< f32
  Id copy = none;       ///< the activation of 16 bits that Casts made of it
};

/// Those that nothing but optimizers writes, with a copy that each step that uses it casts first,
/// reads before it updates the parameter, and does not leave as a result.
std::vector<CopiedParameter> choose_parameter_copies(const Workload& workload);

}  // namespace crossover::cuda
