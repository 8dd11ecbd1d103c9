// SPDX-License-Identifier: Apache-2.0
// What a network is trained to make small.
#pragma once

#include <initializer_list>
#include <utility>

#include "crossover/names.h"

namespace crossover {

enum class LossFunction {
  cross_entropy,  ///< of softmax and a label: SoftmaxCrossEntropy
  mse,            ///< mean squared error: ElementwiseLoss
  bce,            ///< binary cross-entropy with logits: ElementwiseLoss
};

/// As files and names of rows call them.
inline constexpr std::initializer_list<std::pair<const char*, LossFunction>> named_losses{
    {"cross_entropy", LossFunction::cross_entropy},
    {"mse", LossFunction::mse},
    {"bce", LossFunction::bce}};

/// One of those.
constexpr const char* name_of(LossFunction loss) { return name_in(named_losses, loss); }

}  // namespace crossover
