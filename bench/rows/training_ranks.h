// SPDX-License-Identifier: Apache-2.0
// A row that several ranks train: what its losses and parameters must be, and what is verified of
// the share of one.
#pragma once

#include "rows/target.h"
#include "rows/training_plan.h"

namespace crossover::bench {

/// Whether shares of a batch are another training than the batch: statistics of batch normalization
/// are those of a share, and each share has a mask of its own.
bool differs_by_shares(const Workload& workload);

/// The same training in one process, which trains the shares of so many ranks one after another.
TrainingPlan in_turn(TrainingPlan plan, int ranks);

/// A step of the first rank's share of a batch, which has the most rows, without the sum over the
/// ranks: what a rank computes by itself. What they sum shows in losses and parameters.
TrainingPlan share_of_first(TrainingPlan plan, int ranks);

/// The same target with one rank.
Target alone(Target target);

}  // namespace crossover::bench
