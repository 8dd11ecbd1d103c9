// SPDX-License-Identifier: Apache-2.0
// A time on the command line.
#pragma once

#include <string>

namespace crossover::bench {

/// "90s", "5m", "1.5h" -> seconds, above 0. UsageError that names the flag.
double parse_duration(const std::string& flag, const std::string& text);

}  // namespace crossover::bench
