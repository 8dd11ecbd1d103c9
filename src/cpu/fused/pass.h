// SPDX-License-Identifier: Apache-2.0
// The forward pass of a network of Linear layers as one call, on one thread: weights are laid out
// beforehand, and few samples at a time go through all layers.
#pragma once

#include <memory>

#include "crossover/backend.h"

namespace crossover::cpu {

/// Throws Unsupported where dense_pass() does.
std::unique_ptr<Plan> plan_pass(const Workload& workload);

}  // namespace crossover::cpu
