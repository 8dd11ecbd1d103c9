// SPDX-License-Identifier: Apache-2.0
#include "command_line/arguments.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace crossover::bench {

std::vector<std::string> take_flags_from_environment() {
  const std::string prefix = "BENCHMARK_";
  std::vector<std::string> flags;
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (text.starts_with(prefix) && equals != std::string::npos) {
      names.push_back(text.substr(0, equals));
      std::string flag = names.back();
      std::ranges::transform(flag, flag.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      flags.push_back("--" + flag + text.substr(equals));
    }
  }
  for (const std::string& name : names) {
    unsetenv(name.c_str());
  }
  return flags;
}

}  // namespace crossover::bench
