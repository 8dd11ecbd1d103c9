// SPDX-License-Identifier: Apache-2.0
// The names of an enum's values: one table of pairs {name, value}, read in both directions.
#pragma once

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace crossover {

/// std::logic_error where the table lacks it.
template <class Names, class Value>
constexpr auto name_in(const Names& names, const Value& value) {
  for (const auto& [name, one] : names) {
    if (one == value) {
      return name;
    }
  }
  throw std::logic_error("a value without a name");
}

/// None where the table lacks the name.
template <class Names>
auto value_in(const Names& names, const std::string& name) {
  using Found = std::decay_t<decltype(std::begin(names)->second)>;
  const auto at = std::find_if(std::begin(names), std::end(names),
                               [&](const auto& one) { return one.first == name; });
  return at == std::end(names) ? std::nullopt : std::optional<Found>(at->second);
}

/// In the order of the table.
template <class Names>
std::vector<std::string> all_names(const Names& names) {
  std::vector<std::string> all;
  std::transform(std::begin(names), std::end(names), std::back_inserter(all),
                 [](const auto& one) { return std::string(one.first); });
  return all;
}

}  // namespace crossover
