// SPDX-License-Identifier: Apache-2.0
// One line on stderr, whatever stands in it.
#pragma once

#include <algorithm>
#include <iostream>
#include <string>

namespace crossover::bench {

/// "bench: text"; control characters, which may come from arguments and files, become '?'.
inline void say(const std::string& text) {
  std::string line = "bench: " + text;
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  std::cerr << line << std::endl;
}

}  // namespace crossover::bench
