// SPDX-License-Identifier: Apache-2.0
// bench: reads the command line, registers rows, and measures them.
#pragma once

#include <string>
#include <vector>

namespace crossover::bench {

/// `command`: the program's name and its words. Returns the exit code: 1 where a row has no result
/// or output can't be written, 2 where the words are wrong, which standard error says.
int run_program(const std::vector<std::string>& command);

}  // namespace crossover::bench
