// SPDX-License-Identifier: Apache-2.0
// One flag of the command line, and what reads the text after its '='.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "crossover/names.h"

namespace crossover::bench {

/// A command line that can't be carried out; what() is one sentence. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What becomes of the text after a flag's '='. UsageError, which names the flag, where it can't
/// be.
using Take = std::function<void(const std::string& flag, const std::string& text)>;

struct Flag {
  std::string name;   ///< "--batch"
  std::string value;  ///< what stands after '=', as the help text names it; empty: it has none
  std::string help;
  Take take;
};

/// Its own words; a flag that has it may also stand alone.
inline constexpr const char* boolean = "true|false";

/// "a,b" -> {"a", "b"}; an empty text is one empty part.
std::vector<std::string> split(const std::string& text);

/// {"eager", "graph"} -> "eager, graph".
std::string join(const std::vector<std::string>& parts, const std::string& separator = ", ");

template <class List, class Value>
bool contains(const List& list, const Value& value) {
  return std::ranges::find(list, value) != std::ranges::end(list);
}

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

/// Carries out an argument of the command line, "--batch=64" or "-h". UsageError where it is none
/// of the flags, or lacks its value.
void take(const std::string& argument, const std::vector<Flag>& known);

/// The flag's lines of a help text.
std::string help_of(const Flag& flag);

/// Sizes and counts have no greater use.
inline constexpr std::int64_t largest_size = std::int64_t{1} << 40U;

// ---- Where the text goes.

template <class To>
Take into(To& to) {
  return [&to](const std::string& /*flag*/, const std::string& text) { to = text; };
}

/// Of a flag that can be given again.
inline Take behind(std::vector<std::string>& to) {
  return [&to](const std::string& /*flag*/, const std::string& text) { to.push_back(text); };
}

/// Of a flag without a value.
template <class To, class Value>
Take set(To& to, Value value) {
  return [&to, value](const std::string& /*flag*/, const std::string& /*text*/) { to = value; };
}

template <class Number, class To>
Take number_into(To& to, Number least, Number most) {
  return [=, &to](const std::string& flag, const std::string& text) {
    to = parse_number<Number>(flag, text, least, most);
  };
}

template <class To>
Take duration_into(To& to) {
  return
      [&to](const std::string& flag, const std::string& text) { to = parse_duration(flag, text); };
}

/// One of a table of names; the help text shows them.
template <class Named, class To>
Flag choice(const std::string& name, const Named& named, const std::string& help, To& to) {
  const std::vector<std::string> known = all_names(named);
  return {name, join(known, "|"), help, [=, &to](const std::string& flag, const std::string& text) {
            to = std::next(std::begin(named),
                           static_cast<std::ptrdiff_t>(parse_choice(flag, text, text, known)))
                     ->second;
          }};
}

}  // namespace crossover::bench
