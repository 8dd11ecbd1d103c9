// SPDX-License-Identifier: Apache-2.0
// The order in which rows are measured, and how long they will take: each row has a rank. Where
// there is a GPU, the ladder goes by risk: each network's eager row with the CPU's beside it comes
// before all else, then graphs, graphs of whole epochs, and last one kernel for the epoch. Most
// sweeps go on family by family. Within a budget the ceilings come first and then the networks,
// spread over their sizes. On a GPU that is lent for minutes (--sweep=gpu) the ceilings are
// followed by one row for each value of each axis. In both, what is worth less comes behind.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "rows/row.h"

namespace crossover::bench {

struct PlannedRow {
  std::string name;
  std::string pass;    ///< "ladder", "ceilings", "overview", "Epoch" ...
  double seconds = 0;  ///< expected, with what it is the first to need
};

/// Where there is a GPU, before all else: a row of each network there, and the CPU's beside it.
inline constexpr const char* pass_of_ladder = "ladder";
/// The passes that answer the question within a budget, before all others.
inline constexpr const char* pass_of_ceilings = "ceilings";
inline constexpr const char* pass_of_networks = "networks";

/// Of the rows of these names those that the sweep wants, by their ranks.
std::vector<PlannedRow> ordered(Rows& rows, const std::vector<std::string>& names,
                                const Sweep& sweep, bool within_budget);

std::vector<std::string> names_of(const std::vector<PlannedRow>& plan);

/// One line for each row: pass, expected seconds of the row and of all up to it, name. In the end a
/// line for each pass and one for all. Rows for which the budget has no time are only counted: at
/// most so many are left open, as rows may get fewer repetitions.
void print(std::ostream& to, const std::vector<PlannedRow>& plan,
           std::optional<double> budget_seconds);

}  // namespace crossover::bench
