// SPDX-License-Identifier: Apache-2.0
// One line on stderr, whatever stands in it, and what else a terminal is shown of strangers.
#pragma once

#include <algorithm>
#include <iostream>
#include <string>

namespace crossover::bench {

/// Control characters, which may come from arguments, files and other programs, become '?': those
/// of ASCII, and U+0080 to U+009F.
inline std::string printable(std::string text) {
  for (std::size_t at = 0; (at = text.find('\xC2', at)) != std::string::npos; ++at) {
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0) {
      text.replace(at, 2, "?");
    }
  }
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return text;
}

/// "bench: text", printable.
inline void say(const std::string& text) { std::cerr << printable("bench: " + text) << std::endl; }

}  // namespace crossover::bench
