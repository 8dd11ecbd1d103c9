// SPDX-License-Identifier: Apache-2.0
// One line on stderr, whatever stands in it, and what else a terminal is shown of strangers.
#pragma once

#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>

namespace crossover::bench {

/// How many bytes at the start of `rest` make what a terminal carries out, in place of showing it:
/// a control character (U+0000 to U+001F, U+007F to U+009F), or one that hides or turns round what
/// stands beside it (U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F). 0 where none.
inline std::size_t unseen(std::string_view rest) {
  const auto byte = [&](std::size_t at) -> unsigned {
    return at < rest.size() ? static_cast<unsigned char>(rest[at]) : 0;
  };
  if (byte(0) < ' ' || byte(0) == 127) {
    return 1;
  }
  if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) < 0xA0) {
    return 2;
  }
  if (byte(0) == 0xE2 && (byte(1) == 0x80 || byte(1) == 0x81)) {
    const unsigned low = (byte(1) & 1U) << 6U | (byte(2) & 0x3FU);  // of U+2000 and on
    return (0x0B <= low && low <= 0x0F) || (0x28 <= low && low <= 0x2E) || low >= 0x60 ? 3 : 0;
  }
  return 0;
}

/// What is unseen(), which may come from arguments, files and other programs, becomes '?'.
inline std::string printable(std::string text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (const std::size_t bytes = unseen(std::string_view(text).substr(at)); bytes > 0) {
      text.replace(at, bytes, "?");
    }
  }
  return text;
}

/// "bench: text", printable.
inline void say(const std::string& text) { std::cerr << printable("bench: " + text) << std::endl; }

}  // namespace crossover::bench
