// SPDX-License-Identifier: Apache-2.0
// A row that several ranks train: which networks can be, and what is verified of the share of one.
#pragma once

#include "rows/target.h"
#include "rows/training_plan.h"

namespace crossover::bench {

/// Throws Unsupported where shares of a batch are not parts of the same training: statistics of a
/// share are not those of the batch, and masks would be drawn for other rows.
void require_alike_on_ranks(const Workload& workload);

/// A step of the first rank's share of a batch, which has the most rows, without the sum over the
/// ranks: what a rank computes by itself. What they sum shows in losses and parameters.
TrainingPlan share_of_first(TrainingPlan plan, int ranks);

/// The same target with one rank.
Target alone(Target target);

}  // namespace crossover::bench
