// SPDX-License-Identifier: Apache-2.0
// What operations count alike.
#pragma once

#include <cstdint>

#include "crossover/step.h"

namespace crossover {

/// Elements of a tensor; 0 where there is none.
inline double count(const Workload& workload, Id id) {
  return id == none ? 0.0 : static_cast<double>(elements(workload[id].shape));
}

/// Of all of them together.
inline double count(const Workload& workload, const std::vector<Id>& ids) {
  double sum = 0;
  for (const Id id : ids) {
    sum += count(workload, id);
  }
  return sum;
}

inline double flops(Activation activation) {
  return with_activation(activation, [](auto of) { return of.flops; });
}

/// With the product by the gradient.
inline double derivative_flops(Activation activation) {
  return with_activation(activation, [](auto of) { return of.derivative_flops; });
}

}  // namespace crossover
