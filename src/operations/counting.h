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
  switch (activation) {
    case Activation::identity:
      return 0;
    case Activation::relu:
      return 1;
    case Activation::sigmoid:
    case Activation::tanh:
    case Activation::gelu:
    case Activation::hardsigmoid:
      return 4;
    case Activation::gelu_tanh:
      return 9;
    case Activation::silu:
    case Activation::hardswish:
      return 5;
    case Activation::relu6:
    case Activation::leaky_relu:
      return 2;
  }
  return 0;
}

/// With the product by the gradient.
inline double derivative_flops(Activation activation) {
  switch (activation) {
    case Activation::identity:
      return 0;
    case Activation::relu:
      return 1;
    case Activation::sigmoid:
    case Activation::tanh:
    case Activation::hardsigmoid:
      return 3;
    case Activation::gelu:
      return 10;
    case Activation::gelu_tanh:
      return 16;
    case Activation::silu:
      return 9;
    case Activation::hardswish:
      return 5;
    case Activation::relu6:
    case Activation::leaky_relu:
      return 2;
  }
  return 0;
}

}  // namespace crossover
