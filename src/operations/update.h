// SPDX-License-Identifier: Apache-2.0
// What optimizers ask alike of their tensors.
#pragma once

#include <cstddef>
#include <vector>

#include "fit.h"

namespace crossover {

/// Each parameter, and the tensor that goes with it, is f32 and of one shape.
inline void check_update(const Fit& fit, const std::vector<Id>& parameters,
                         const std::vector<Id>& with) {
  fit.require(parameters.size() == with.size(), "lists of different lengths");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    fit.expect(parameters[i], fit.at(parameters[i]).shape);
    fit.expect(with[i], fit.at(parameters[i]).shape);
  }
}

}  // namespace crossover
