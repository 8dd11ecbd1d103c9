// SPDX-License-Identifier: Apache-2.0
#include "base/say.h"

#include <algorithm>
#include <iostream>

namespace crossover::bench {

void say(const std::string& text) {
  std::string line = "bench: " + text;
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  std::cerr << line << std::endl;
}

}  // namespace crossover::bench
