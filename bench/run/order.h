// SPDX-License-Identifier: Apache-2.0
// The order in which rows are measured, and how long they will take: each row has a rank. Where
// there is a GPU, the ladder goes by risk: each network's eager row with the CPU's beside it comes
// before all else, then graphs, graphs of whole epochs, and last one kernel for the epoch. Most
// sweeps go on family by family. Within a budget the ceilings come first and then the networks,
// spread over their sizes. On a GPU that is lent for minutes (--sweep=gpu) the ceilings are
// followed by one row for each value of each axis. In both, what is worth less comes behind.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "crossover/executions.h"
#include "rows/families.h"
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

/// One line for each row: pass, expected seconds of the row and of all up to it, name. In the end a
/// line for each pass and one for all. Rows for which the budget has no time are only counted: at
/// most so many are left open, as rows may get fewer repetitions.
void print(std::ostream& to, const std::vector<PlannedRow>& plan,
           std::optional<double> budget_seconds);

// ---- The ladder: the rows that a crossover is made of, in the order in which they are worth most
// and risk least.

const BenchmarkFamily& family_in(const Row& row);
bool on_gpu(const Row& row);

/// "disc-2/100": of a row of a network.
std::string network_of(const Row& row);

/// Of CPU threads.
struct LeastAndMost {
  int least = std::numeric_limits<int>::max(), most = 0;
};

LeastAndMost threads_of(Rows& rows, const std::vector<std::string>& names);

/// Whether the row is one of those that the crossover is made of: on the CPU by one thread and by
/// all of them, on a GPU with the data there.
bool is_of_the_ladder(const Row& row, const LeastAndMost& threads);

/// Of what trains epochs, the GPU's part of the ladder goes by risk, and the CPU's further rows
/// beside it; what is not of the ladder comes behind.
std::size_t step_of(const Row& row, const LeastAndMost& threads);
inline constexpr std::size_t step_of_the_others = most_risk + 1;

/// Where there is a GPU: of each network (of those on ladders, if there are any) the GPU's row with
/// which the least can go wrong, and the CPU's on all threads beside it, of several executions that
/// which was registered last (auto). They are a crossover, whatever comes of the rest.
std::set<std::string> first_of_the_ladder(Rows& rows, const std::vector<std::string>& names,
                                          const LeastAndMost& threads);

/// By network of these rows, when its turn is: ladder by ladder, each network halves the widest gap
/// between those before it, in the order of registration.
std::map<std::string, std::size_t> turns_of(Rows& rows, const std::vector<std::string>& names);

}  // namespace crossover::bench
