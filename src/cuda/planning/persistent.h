// SPDX-License-Identifier: Apache-2.0
// Fits the training of a small network onto one multiprocessor.
#pragma once

#include "../persistent_plan.h"
#include "crossover/backend.h"

namespace crossover::cuda {

/// Throws Unsupported, with the reason in words, where the Workload is no chain of Linear layers,
/// where the options ask for what one kernel can't do, or where it does not fit.
PersistentPlan plan_persistent(const Workload& workload, const CompileOptions& options,
                               const OnChip& chip);

/// The phases of a step, barrier after barrier, before anybody says how their products are split.
/// With `overlapped`, the gradients of a layer's weights are computed beside the gradient of the
/// layer before, for which three of those lie in memory at once; else two.
std::vector<std::vector<Job>> phases_of(std::size_t layers, bool adamw, bool overlapped);

/// Chooses how a block of so many warps splits the jobs of a phase, and returns an estimate of the
/// phase's time in clock cycles. It decides nothing but speed.
double split(std::vector<Job>& phase, const std::vector<OnChipLayer>& layers, int batch, int warps);

}  // namespace crossover::cuda
