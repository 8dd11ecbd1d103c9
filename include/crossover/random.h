// SPDX-License-Identifier: Apache-2.0
// The deterministic numbers that every backend, and every run in another framework, starts from,
// and the order of the rows.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "crossover/host_device.h"
#include "crossover/step.h"

namespace crossover {

/// Streams of the generator.
enum class Stream : std::uint64_t { parameters = 1, inputs = 2, labels = 3, order = 4 };

/// The finalizer of splitmix64.
CROSSOVER_HOST_DEVICE constexpr std::uint64_t finalized(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

/// The upper 24 bits of splitmix64 at that place of its sequence; as a number in [0, 1).
CROSSOVER_HOST_DEVICE constexpr std::uint32_t upper_bits(std::uint64_t place) {
  return static_cast<std::uint32_t>(finalized((place + 1) * 0x9E3779B97F4A7C15U) >> 40U);
}
constexpr double unit_interval(std::uint64_t place) {
  return static_cast<double>(upper_bits(place)) / 16777216.0;
}

/// Position k of a stream: splitmix64 (Steele, Lea, Flood 2014) in counter mode, its upper 24 bits
/// as a number in [0, 1), so that it is exact in float32.
constexpr double uniform(Stream stream, std::uint64_t k) {
  return unit_interval((static_cast<std::uint64_t>(stream) << 32U) + k);
}

/// The place of the first number by which dropout keeps elements of the layer of that seed: a hash
/// of seed and step.
CROSSOVER_HOST_DEVICE constexpr std::uint64_t dropout_start(std::int64_t seed, std::int32_t step) {
  const std::uint64_t layer = 0xD1B54A32D192ED03U * (static_cast<std::uint64_t>(seed) + 1);
  return finalized(layer + static_cast<std::uint64_t>(static_cast<std::uint32_t>(step)));
}

/// The element's number.
constexpr double dropout_uniform(std::int64_t seed, std::int32_t step, std::uint64_t element) {
  return unit_interval(dropout_start(seed, step) + element);
}

/// The initial values of a parameter, by element. All parameters of a Workload draw from one
/// running position, in the order of their numbers; those with a constant initial value consume
/// their positions too.
class StartValues {
 public:
  StartValues(const Workload& workload, Id parameter);
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] double operator[](std::size_t i) const {
    double value = start_.value;
    if (start_.bound > 0) {
      value += (2 * uniform(Stream::parameters, position_ + i) - 1) * start_.bound;
    }
    if (!factors_.empty()) {
      value *= factors_[i / row_];
    }
    return offsets_.empty() ? value : value + offsets_[i / row_];
  }

 private:
  [[nodiscard]] std::vector<double> all() const;

  Start start_;
  std::size_t size_;
  std::size_t row_;  ///< elements that share their first index
  std::uint64_t position_ = 0;
  std::vector<double> factors_, offsets_;  ///< by that index
};

// ---- The order in which an epoch reads its rows, another one in each epoch: known to every
// device, and to the reference, without a list of it.

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
