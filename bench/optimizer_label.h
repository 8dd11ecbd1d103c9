// SPDX-License-Identifier: Apache-2.0
// How a network is trained, in words.
#pragma once

#include <string>

#include "crossover/training.h"

namespace crossover::bench {

/// "sgd lr=0.1": what a row's name does not say.
std::string optimizer_label(const Optimizer& optimizer);

}  // namespace crossover::bench
