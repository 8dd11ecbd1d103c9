// SPDX-License-Identifier: Apache-2.0
// What brings a step's rows of a resident data set into its staging buffer from within a graph.
#pragma once

#include "bind.h"
#include "gather.cuh"

namespace crossover::cuda {

/// One kernel, or none where the step reads no rows.
void gather(const StepPlan& step, const Binding& binding);

/// At the head of a loop's body. The step reads rows.
void gather_in_loop(const StepPlan& step, const Binding& binding, const LoopCondition& condition);

}  // namespace crossover::cuda
