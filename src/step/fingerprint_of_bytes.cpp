// SPDX-License-Identifier: Apache-2.0
#include "crossover/fingerprint.h"

namespace crossover {

std::uint64_t fingerprint(std::string_view bytes, std::uint64_t before) {
  constexpr std::uint64_t prime = 0x100000001b3;
  std::uint64_t state = before;
  for (const char byte : bytes) {
    state = (state ^ static_cast<unsigned char>(byte)) * prime;
  }
  return state;
}

std::string hexadecimal(std::uint64_t number) {
  std::string digits(16, '0');
  for (std::size_t i = digits.size(); i-- > 0; number >>= 4U) {
    digits[i] = "0123456789abcdef"[number & 0xFU];
  }
  return digits;
}

}  // namespace crossover
