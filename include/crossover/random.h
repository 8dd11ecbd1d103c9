// SPDX-License-Identifier: Apache-2.0
// The deterministic numbers that every backend, and every run in another framework, starts from.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/step.h"

namespace crossover {

/// Streams of the generator.
enum class Stream : std::uint64_t { parameters = 1, inputs = 2, labels = 3 };

/// Position k of a stream: splitmix64 (Steele, Lea, Flood 2014) in counter mode, its upper 24 bits
/// as a number in [0, 1), so that it is exact in float32.
constexpr double uniform(Stream stream, std::uint64_t k) {
  std::uint64_t z = (static_cast<std::uint64_t>(stream) << 32U) + k;
  z = (z + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  z ^= z >> 31U;
  return static_cast<double>(z >> 40U) / 16777216.0;
}

/// The initial values of a parameter. All parameters of a Workload draw from one running position,
/// in the order of their numbers; those with a constant initial value consume their positions too.
std::vector<double> start_values(const Workload& workload, Id parameter);

}  // namespace crossover
