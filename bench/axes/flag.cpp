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

// ---- A command line of flags

namespace {

/// Whether the flag has that among its words: --benchmark_list_tests has --list.
bool has_word(const std::string& flag, const std::string& typed) {
  const auto words = [](std::string text) {
    text.erase(0, text.find_first_not_of('-'));
    std::ranges::replace(text, '-', '_');
    return "_" + text + "_";
  };
  constexpr std::size_t shortest = 3;
  const std::string word = words(typed);
  return word.size() >= shortest + 2 && words(flag).find(word) != std::string::npos;
}

/// The flag that a mistyped one is a part of, or that is most like it by the number of edits
/// (Levenshtein); empty where none is near.
std::string nearest(const std::string& typed, const std::vector<Flag>& known) {
  for (const Flag& flag : known) {
    if (has_word(flag.name, typed)) {
      return flag.name;
    }
  }
  std::string best;
  std::size_t fewest = 3;
  for (const Flag& flag : known) {
    const std::string& name = flag.name;
    std::vector<std::size_t> row(name.size() + 1);
    for (std::size_t j = 0; j <= name.size(); ++j) {
      row[j] = j;
    }
    for (std::size_t i = 1; i <= typed.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= name.size(); ++j) {
        const std::size_t above = row[j];
        row[j] = std::min(
            {row[j] + 1, row[j - 1] + 1, diagonal + (typed[i - 1] == name[j - 1] ? 0 : 1)});
        diagonal = above;
      }
    }
    if (row.back() < fewest) {
      fewest = row.back();
      best = name;
    }
  }
  return best;
}

constexpr std::size_t help_column = 31;
constexpr std::size_t help_width = 100;

/// The words of `text` in lines that fit behind help_column.
std::string wrapped(const std::string& text, const std::string& indent) {
  std::istringstream words(text);
  std::string lines;
  std::size_t used = 0;
  for (std::string word; words >> word;) {
    const bool fits = used + 1 + word.size() <= help_width - help_column;
    used = fits || used == 0 ? used + (used > 0 ? 1 : 0) + word.size() : word.size();
    lines += (lines.empty() ? "" : fits ? " " : indent) + word;
  }
  return lines;
}

}  // namespace

void take(const std::string& argument, const std::vector<Flag>& known) {
  const std::size_t equals = argument.find('=');
  const std::string name = argument == "-h" ? "--help" : argument.substr(0, equals);
  const bool has_value = equals != std::string::npos;
  const std::string value = has_value ? argument.substr(equals + 1) : "";
  const auto flag = std::ranges::find(known, name, &Flag::name);
  if (flag == known.end()) {
    const std::string meant = nearest(name, known);
    throw UsageError("unknown argument '" + argument + "'" +
                     (meant.empty() ? "; see --help" : "; did you mean " + meant + "?"));
  }
  if (flag->value.empty() && has_value) {
    throw UsageError(name + " takes no value");
  }
  if (!flag->value.empty() && value.empty() && flag->value != boolean) {
    throw UsageError(name + " needs a value: " + name + "=" + flag->value);
  }
  flag->take(name, value);
}

std::string help_of(const Flag& flag) {
  const std::string indent = "\n" + std::string(help_column, ' ');
  std::string left = "  " + flag.name + (flag.value.empty() ? "" : "=" + flag.value);
  left += left.size() < help_column ? std::string(help_column - left.size(), ' ') : indent;
  return left + wrapped(flag.help, indent) + "\n";
}

}  // namespace crossover::bench
