// SPDX-License-Identifier: Apache-2.0
// What optimizers ask alike of their tensors.
#pragma once

#include <cstddef>
#include <vector>

#include "fit.h"

namespace crossover {

/// Each parameter is f32, and so is the tensor of its shape that goes with it; `of_any_type`: or of
/// 16 bits.
inline void check_update(const Fit& fit, const std::vector<Id>& parameters,
                         const std::vector<Id>& with, bool of_any_type = false) {
  fit.require(parameters.size() == with.size(), "lists of different lengths");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    fit.expect(parameters[i], fit.at(parameters[i]).shape);
    fit.expect(with[i], fit.at(parameters[i]).shape, of_any_type ? fit.number(with[i]) : Type::f32);
  }
}

}  // namespace crossover
