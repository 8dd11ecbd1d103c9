// SPDX-License-Identifier: Apache-2.0
// The command line of a program that links crossover::two.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/options.h"

namespace crossover::two {

enum class Action { measure, list, help, worker };

struct Options : bench::RunOptions {
  Action action = Action::measure;
  std::string filter;                      ///< of rows by their names; empty: all
  bool leaves_gpu = false;                 ///< no row on a GPU
  bool flushes = false;                    ///< the caches are overwritten before each call
  std::optional<double> min_time_seconds;  ///< none: as long as suits
};

/// Without the program's name. UsageError where they can't be carried out.
Options options_in(const std::vector<std::string>& words);

/// The help text of that program.
std::string help_of_program(const std::string& program);

}  // namespace crossover::two
