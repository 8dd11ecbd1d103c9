// SPDX-License-Identifier: Apache-2.0
#include "command_line/duration.h"

#include <array>
#include <utility>

#include "command_line/flag.h"

namespace crossover::bench {

double parse_duration(const std::string& flag, const std::string& text) {
  constexpr std::array<std::pair<char, double>, 3> units{{{'s', 1}, {'m', 60}, {'h', 3600}}};
  constexpr double longest = 1e7;
  for (const auto& [unit, seconds] : units) {
    if (text.size() > 1 && text.back() == unit) {
      const auto count =
          parse_number<double>(flag, text.substr(0, text.size() - 1), 0, longest / seconds);
      if (count > 0) {
        return count * seconds;
      }
    }
  }
  throw UsageError(flag + "=" + text +
                   " is no time; give seconds, minutes or hours: 90s, 5m, 1.5h");
}

}  // namespace crossover::bench
