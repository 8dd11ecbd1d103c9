// SPDX-License-Identifier: Apache-2.0
// Whether two results are equal: floating-point numbers within a tolerance, all else exactly.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <ranges>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

namespace crossover::two {

struct Difference {
  double relative_error = 0;  ///< the largest, over the largest number of the right result
  std::int64_t entries = 0;   ///< that were compared
  std::string words;          ///< "entry 5 is 3, not 4"; empty: there is none
};

namespace detail {

template <class Value>
inline constexpr bool is_complex = false;
template <class Real>
inline constexpr bool is_complex<std::complex<Real>> = true;

template <class Value>
inline constexpr bool is_inexact = std::is_floating_point_v<Value> || is_complex<Value>;

template <class Value>
bool is_no_number(const Value& value) {
  return std::isnan(std::real(value)) || std::isnan(std::imag(value));
}

template <class Value>
std::string shown(const Value& value) {
  if constexpr (std::is_floating_point_v<Value>) {  // as few digits as tell it
    std::array<char, 64> text{};
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
  } else if constexpr (is_complex<Value>) {
    return "(" + shown(value.real()) + ", " + shown(value.imag()) + ")";
  } else if constexpr (requires(std::ostream & to) { to << value; }) {
    std::ostringstream text;
    text << value;
    constexpr std::size_t longest = 60;
    return text.str().substr(0, longest);
  } else {
    return "another value";
  }
}

/// So far, entry by entry.
struct Comparison {
  double largest_error = 0, largest_right = 0;
  std::int64_t entries = 0;
  std::string worst;    ///< of what has a tolerance
  std::string unequal;  ///< the first of what has none

  [[nodiscard]] std::string words(const std::string& result, const std::string& right) const {
    return "entry " + std::to_string(entries) + " is " + result + ", not " + right;
  }
};

template <class Value>
void compare(const Value& result, const Value& right, Comparison& to) {
  if constexpr (is_inexact<Value>) {
    auto error = static_cast<double>(std::abs(result - right));
    if (result == right || (is_no_number(result) && is_no_number(right))) {  // infinities, too
      error = 0;
    } else if (std::isnan(error)) {
      error = std::numeric_limits<double>::infinity();
    }
    if (const auto size = static_cast<double>(std::abs(right)); std::isfinite(size)) {
      to.largest_right = std::max(to.largest_right, size);
    }
    if (error > to.largest_error) {
      to.largest_error = error;
      to.worst = to.words(shown(result), shown(right));
    }
    ++to.entries;
  } else if constexpr (std::is_convertible_v<const Value&, std::string_view> ||
                       !std::ranges::forward_range<const Value>) {
    if (to.unequal.empty() && !(result == right)) {
      to.unequal = to.words(shown(result), shown(right));
    }
    ++to.entries;
  } else {
    const auto length = std::ranges::distance(result);
    const auto right_length = std::ranges::distance(right);
    if (length != right_length && to.unequal.empty()) {
      to.unequal =
          "it has " + std::to_string(length) + " entries, not " + std::to_string(right_length);
    }
    auto other = std::ranges::begin(right);
    for (auto at = std::ranges::begin(result);
         length == right_length && other != std::ranges::end(right); ++at, ++other) {
      compare<std::ranges::range_value_t<const Value>>(*at, *other, to);
    }
  }
}

/// Of an error two digits.
inline std::string rounded(double error) {
  std::ostringstream text;
  text.precision(2);
  text << error;
  return text.str();
}

/// An error that somebody else has measured.
inline Difference judged(double error, double tolerance) {
  Difference found{.relative_error = error, .entries = 1, .words = {}};
  if (!(error <= tolerance)) {
    found.words = "its error is " + rounded(error) + ", above the tolerance " + rounded(tolerance);
  }
  return found;
}

}  // namespace detail

/// Of numbers, text, and ranges of these, in each other too; of what else has an operator ==.
template <class Value>
Difference difference(const Value& result, const Value& right, double tolerance) {
  detail::Comparison all;
  detail::compare(result, right, all);
  const double error = all.largest_error == 0  ? 0
                       : all.largest_right > 0 ? all.largest_error / all.largest_right
                                               : std::numeric_limits<double>::infinity();
  Difference found{.relative_error = error, .entries = all.entries, .words = all.unequal};
  if (found.words.empty() && !(error <= tolerance)) {
    found.words = all.worst + " (relative error " + detail::rounded(error) + ", tolerance " +
                  detail::rounded(tolerance) + ")";
  }
  return found;
}

}  // namespace crossover::two
