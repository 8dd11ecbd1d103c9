// SPDX-License-Identifier: Apache-2.0
// The order in which rows are measured, and how long they will take. Most sweeps go family by
// family. On a GPU that is lent for minutes (--sweep=gpu) what comes first is what is worth most
// should the time run out: ceilings, then one row for each value of each axis, then the rest.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "command_line/arguments.h"
#include "rows/row.h"

namespace crossover::bench {

struct PlannedRow {
  std::string name;
  std::string pass;    ///< "ceilings", "overview", "Epoch" ...
  double seconds = 0;  ///< expected, with what it is the first to need
};

/// Of the rows of these names those that the sweep wants, in its order.
std::vector<PlannedRow> schedule(Rows& rows, const std::vector<std::string>& names,
                                 const Sweep& sweep);

/// What is worth more minutes has a lower rank.
int worth_rank(const std::string& family);

/// Sets what each row is expected to take, in this order: the first of those that share a reference
/// computes it.
void expect(std::vector<PlannedRow>& plan, Rows& rows);

/// One line for each row: pass, expected seconds of the row and of all up to it, name. In the end a
/// line for each pass and one for all.
void print(std::ostream& to, const std::vector<PlannedRow>& plan);

}  // namespace crossover::bench
