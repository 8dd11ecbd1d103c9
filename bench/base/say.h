// SPDX-License-Identifier: Apache-2.0
// One line on stderr, whatever stands in it, and what else a terminal is shown of strangers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iostream>
#include <string>
#include <utility>

namespace crossover::bench {

/// What a terminal does not show but obeys, from the first to the last: control characters, marks
/// of the direction of writing, ends of lines, and what has no width.
inline constexpr std::array<std::pair<unsigned, unsigned>, 7> unseen{{{0x00, 0x1F},
                                                                      {0x7F, 0x9F},
                                                                      {0x61C, 0x61C},
                                                                      {0x200B, 0x200F},
                                                                      {0x2028, 0x202E},
                                                                      {0x2060, 0x206F},
                                                                      {0xFEFF, 0xFEFF}}};

/// "\n", "\x1b", "\u202e".
inline std::string escaped(unsigned character) {
  switch (character) {
    case '\t':
      return "\\t";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    default:
      break;
  }
  const bool is_short = character < 0x100;
  std::string text = is_short ? "\\x" : "\\u";
  for (unsigned bits = is_short ? 8 : 16; bits > 0; bits -= 4) {
    text += "0123456789abcdef"[character >> (bits - 4) & 0xFU];
  }
  return text;
}

/// These, which may come from arguments, files and other programs, are escaped as words/text.py of
/// crossover_bench does. What is no UTF-8 stays.
inline std::string printable(const std::string& text) {
  constexpr unsigned of_one = 0x80;  // from there on a character has several bytes
  std::string shown;
  for (std::size_t at = 0, length = 1; at < text.size(); at += length) {
    const auto byte = [&](std::size_t place) {
      return place < text.size() ? static_cast<unsigned char>(text[place]) : 0U;
    };
    const unsigned lead = byte(at);
    const std::size_t told = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    unsigned character = told == 1 ? lead : lead & (0x7FU >> told);
    for (length = 1; length < told && (byte(at + length) & 0xC0U) == of_one; ++length) {
      character = character << 6U | (byte(at + length) & 0x3FU);
    }
    const bool is_whole = length == told && (told > 1 || lead < of_one);
    const bool is_shown = !is_whole || std::ranges::none_of(unseen, [&](const auto& range) {
      return range.first <= character && character <= range.second;
    });
    shown += is_shown ? text.substr(at, length) : escaped(character);
  }
  return shown;
}

/// Who says it: bench, unless a program that links the harness has set a name of its own.
inline std::string& speaker() {
  static std::string name = "bench";
  return name;
}

/// "bench: text", printable.
inline void say(const std::string& text) {
  std::cerr << printable(speaker() + ": " + text) << std::endl;
}

}  // namespace crossover::bench
