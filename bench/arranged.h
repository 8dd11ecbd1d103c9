// SPDX-License-Identifier: Apache-2.0
// How a network's epoch is trained on a device, and how that is called.
#pragma once

#include <string>

#include "crossover/training.h"

namespace crossover::bench {

/// The list as it is compiled. On the CPU plain SGD needs no gradients in memory. On a GPU that
/// would take cuBLASLt's epilogue for the bias gradient away, which does not add to what is there.
Workload arranged(const Workload& epoch, bool on_cpu);

/// "sgd lr=0.1": what a row's name does not say.
std::string description(const Optimizer& optimizer);

}  // namespace crossover::bench
