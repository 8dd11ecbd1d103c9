// SPDX-License-Identifier: Apache-2.0
#include "crossover/regular_expression.h"

#include <array>
#include <stdexcept>

namespace crossover {

RegularExpression::RegularExpression(const std::string& pattern, Case letters) {
  // regcomp() would read as far as a NUL and no further.
  if (pattern.find('\0') != std::string::npos) {
    throw std::invalid_argument("a NUL character");
  }
  const int flags = REG_EXTENDED | (letters == Case::ignored ? REG_ICASE : 0);
  const int fault = regcomp(&compiled_, pattern.c_str(), flags);
  if (fault != 0) {
    std::array<char, 200> reason{};
    regerror(fault, &compiled_, reason.data(), reason.size());
    throw std::invalid_argument(reason.data());
  }
}

RegularExpression::~RegularExpression() { regfree(&compiled_); }

bool RegularExpression::is_in(const std::string& text) const {
  return regexec(&compiled_, text.c_str(), 0, nullptr, 0) == 0;
}

std::string RegularExpression::replaced(const std::string& text,
                                        const std::string& replacement) const {
  std::string result;
  std::size_t start = 0;
  regmatch_t match{};
  // Behind the first match the rest of the text does not begin a line.
  while (regexec(&compiled_, text.c_str() + start, 1, &match, start == 0 ? 0 : REG_NOTBOL) == 0 &&
         match.rm_eo > match.rm_so) {
    result += text.substr(start, static_cast<std::size_t>(match.rm_so)) + replacement;
    start += static_cast<std::size_t>(match.rm_eo);
  }
  return result + text.substr(start);
}

}  // namespace crossover
