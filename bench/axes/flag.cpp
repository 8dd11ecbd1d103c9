// SPDX-License-Identifier: Apache-2.0
#include "axes/flag.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <type_traits>
#include <utility>

namespace crossover::bench {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t start = 0;;) {
    const std::size_t comma = text.find(',', start);
    parts.push_back(text.substr(start, comma - start));
    if (comma == std::string::npos) {
      return parts;
    }
    start = comma + 1;
  }
}

std::string join(const std::vector<std::string>& parts, const std::string& separator) {
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : separator) + part;
  }
  return text;
}

template <class Number>
Number parse_number(const std::string& flag, const std::string& text, Number least, Number most) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(value >= least && value <= most)) {
    std::ostringstream message;
    message << flag << ": '" << text << "' is not a "
            << (std::is_integral_v<Number> ? "whole " : "") << "number from " << least << " to "
            << most;
    throw UsageError(message.str());
  }
  return value;
}

template int parse_number(const std::string&, const std::string&, int, int);
template std::int64_t parse_number(const std::string&, const std::string&, std::int64_t,
                                   std::int64_t);
template double parse_number(const std::string&, const std::string&, double, double);

std::size_t parse_choice(const std::string& flag, const std::string& text, const std::string& name,
                         const std::vector<std::string>& known) {
  const auto at = std::ranges::find(known, name);
  if (at == known.end()) {
    throw UsageError(flag + "=" + text + ": '" + name + "' is not one of " + join(known));
  }
  return static_cast<std::size_t>(at - known.begin());
}

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
