// SPDX-License-Identifier: Apache-2.0
// One flag of the command line, and what reads the text after its '='.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace crossover::bench {

/// A command line that can't be carried out; what() is one sentence. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Flag {
  std::string name;   ///< "--batch"
  std::string value;  ///< what stands after '=', as the help text names it; empty: it has none
  std::string help;
  std::function<void(const std::string& text)> take;
};

/// "a,b" -> {"a", "b"}; an empty text is one empty part.
std::vector<std::string> split(const std::string& text);

/// {"eager", "graph"} -> "eager, graph".
std::string join(const std::vector<std::string>& parts, const std::string& separator = ", ");

/// The whole text as an int, std::int64_t or double within the bounds; UsageError that names the
/// flag if not.
template <class Number>
Number parse_number(const std::string& flag, const std::string& text, Number least, Number most);

/// The same of each part of a list.
template <class Number>
std::vector<Number> parse_numbers(const std::string& flag, const std::string& text, Number least,
                                  Number most) {
  std::vector<Number> numbers;
  for (const std::string& part : split(text)) {
    numbers.push_back(parse_number(flag, part, least, most));
  }
  return numbers;
}

/// The place of `name` among `known`. UsageError where it is none of them; `text` is the flag's
/// whole value, of which the name may be a part.
std::size_t parse_choice(const std::string& flag, const std::string& text, const std::string& name,
                         const std::vector<std::string>& known);

/// "90s", "5m", "1.5h" -> seconds, above 0. UsageError that names the flag.
double parse_duration(const std::string& flag, const std::string& text);

/// Sizes and counts have no greater use.
inline constexpr std::int64_t largest_size = std::int64_t{1} << 40U;

}  // namespace crossover::bench
