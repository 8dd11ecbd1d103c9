// SPDX-License-Identifier: Apache-2.0
// The order in which an epoch reads its rows, another one in each epoch: known to every device, and
// to the reference, without a list of it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "crossover/random.h"

namespace crossover {

/// A permutation of 0 ... rows - 1, from its number alone: a Feistel network (Luby and Rackoff
/// 1988, How to construct pseudorandom permutations from pseudorandom functions) on the least even
/// number of bits that counts the rows, walked until it comes to one of them (Black and Rogaway
/// 2002, Ciphers with arbitrary finite domains). It has eight rounds: with four, ten rows would
/// come to some places a quarter more often than to others.
class Shuffle {
 public:
  Shuffle(std::int64_t rows, std::int32_t epoch)
      : rows_(static_cast<std::uint64_t>(rows)),
        half_(std::max<std::uint64_t>(1, (std::bit_width(rows_ - 1) + 1) / 2)),
        mask_((std::uint64_t{1} << half_) - 1) {
    const auto start = (static_cast<std::uint64_t>(Stream::order) << 32U) +
                       keys_.size() * static_cast<std::uint32_t>(epoch);
    for (std::uint64_t round = 0; round < keys_.size(); ++round) {
      keys_[round] = finalized((start + round + 1) * 0x9E3779B97F4A7C15U);
    }
  }

  /// The row that is the i-th of the epoch.
  [[nodiscard]] std::int64_t operator[](std::int64_t i) const {
    auto place = static_cast<std::uint64_t>(i);
    do {
      place = permuted(place);
    } while (place >= rows_);
    return static_cast<std::int64_t>(place);
  }

 private:
  [[nodiscard]] std::uint64_t permuted(std::uint64_t place) const {
    std::uint64_t left = place >> half_;
    std::uint64_t right = place & mask_;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (finalized(key ^ right) & mask_);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  std::uint64_t rows_;
  std::uint64_t half_;  ///< bits of each half
  std::uint64_t mask_;
  std::array<std::uint64_t, 8> keys_{};
};

}  // namespace crossover
