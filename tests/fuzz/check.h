// SPDX-License-Identifier: Apache-2.0
// What the fuzzers check with. Unlike assert() it is there in every build.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace crossover::fuzz {

/// Ends the process where `holds` is false; libFuzzer keeps the input.
inline void require(bool holds, const std::string& otherwise) {
  if (!holds) {
    std::fprintf(stderr, "fuzz: %s\n", otherwise.c_str());
    std::abort();
  }
}

inline bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

/// `text` can be shown as one line: it is not empty and has no control characters.
inline void require_line(std::string_view text) {
  require(!text.empty(), "an error without a message");
  for (const char c : text) {
    require(!is_control(c), "a control character in: " + std::string(text));
  }
}

}  // namespace crossover::fuzz
