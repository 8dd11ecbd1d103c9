// SPDX-License-Identifier: Apache-2.0
// Which rows are measured, in which order, and how long they will take.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace crossover::bench {

struct PlannedRow {
  std::string name;
  std::string pass;    ///< "answer", "ladder", "ceilings", "overview", "Epoch" ...
  double seconds = 0;  ///< expected, with what it is the first to need
};

/// Before all else: what the first answer stands on, and where there is a GPU the other networks of
/// the ladders.
inline constexpr const char* pass_of_answer = "answer";
inline constexpr const char* pass_of_ladder = "ladder";
/// The passes that answer the question within a budget, before all others.
inline constexpr const char* pass_of_ceilings = "ceilings";
inline constexpr const char* pass_of_networks = "networks";

std::vector<std::string> names_of(const std::vector<PlannedRow>& plan);

/// The names that --benchmark_filter selects: a regular expression found anywhere in the name;
/// "-" before it selects the others. UsageError where none is.
std::vector<std::string> selected(const std::vector<std::string>& names, const std::string& filter);

/// One line for each row: pass, expected seconds of the row and of all up to it, name. In the end a
/// line for each pass and one for all. Rows for which the budget has no time are only counted: at
/// most so many are left open, as rows may get fewer repetitions.
void print(std::ostream& to, const std::vector<PlannedRow>& plan,
           std::optional<double> budget_seconds);

}  // namespace crossover::bench
