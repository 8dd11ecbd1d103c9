// SPDX-License-Identifier: Apache-2.0
// A Program's profile as counters of a row: seconds_product, seconds_elementwise, ...
#pragma once

#include <map>
#include <string>

#include "crossover/backend.h"

namespace crossover::bench {

/// "product", "copy_to_device", ...
std::string to_string(OpCategory category);

/// Sets the counters of all categories that the program has, from the median, by total time, of as
/// many profiles as fit `seconds`: one at least, 21 at most.
void count_profile(Program& program, double seconds, std::map<std::string, double>& counters);

/// Whether it is one of these counters.
bool is_profile(const std::string& counter);

}  // namespace crossover::bench
