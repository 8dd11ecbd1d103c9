// SPDX-License-Identifier: Apache-2.0
// One line on stderr, whatever stands in it.
#pragma once

#include <string>

namespace crossover::bench {

/// "bench: text"; control characters, which may come from arguments and files, become '?'.
void say(const std::string& text);

}  // namespace crossover::bench
