// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <regex.h>

#include <string>

namespace crossover {

/// An extended regular expression of POSIX with GNU's additions (regex(7)), as Google Benchmark's
/// filter is one. Not std::regex: that is header-only, doubles the compile time of what includes
/// it, and overflows the stack on long texts.
class RegularExpression {
 public:
  enum class Case { sensitive, ignored };

  /// Throws std::invalid_argument, with the C library's reason, where `pattern` is none.
  explicit RegularExpression(const std::string& pattern, Case letters = Case::sensitive);
  ~RegularExpression();
  RegularExpression(const RegularExpression&) = delete;
  RegularExpression& operator=(const RegularExpression&) = delete;
  RegularExpression(RegularExpression&&) = delete;
  RegularExpression& operator=(RegularExpression&&) = delete;

  /// Whether any part of `text` matches.
  [[nodiscard]] bool is_in(const std::string& text) const;

  /// `text` with each match replaced by `replacement`; a match of no characters ends the search.
  [[nodiscard]] std::string replaced(const std::string& text, const std::string& replacement) const;

 private:
  regex_t compiled_{};
};

}  // namespace crossover
