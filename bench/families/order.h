// SPDX-License-Identifier: Apache-2.0
// The order in which rows are measured, and how long they will take: each row has a rank. First
// comes what answers: every second network of each ladder of five or more, the middle before the
// ends, on each side. Where there is a GPU, that goes by risk: each network's eager row with the
// CPU's beside it, then graphs; then so the others of the ladders. Graphs of whole epochs and one
// kernel for the epoch come with the other rows. Most sweeps go on family by family. Within a
// budget the ceilings follow and then the networks, spread over their sizes. On a GPU that is lent
// for minutes
// (--sweep=gpu) the ceilings are followed by one row for each value of each axis. In both, what is
// worth less comes behind.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_line/sweeps.h"
#include "rows/row.h"
#include "run/plan.h"

namespace crossover::bench {

/// Of the rows of these names those that the sweep wants, by their ranks.
std::vector<PlannedRow> ordered(Rows& rows, const std::vector<std::string>& names,
                                const Sweep& sweep, bool within_budget);

/// Leaves of the rows of other programs in the plan what takes that share of the budget, or where
/// there is none of what the plan takes then: network by network, in the plan's order, all rows of
/// one that fits. On the CPU those by the fewest and by the most threads.
void keep_share_of_peers(std::vector<PlannedRow>& plan, Rows& rows, double share,
                         std::optional<double> budget_seconds);

}  // namespace crossover::bench
