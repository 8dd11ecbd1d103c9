// SPDX-License-Identifier: Apache-2.0
// The families of benchmarks, and what a sweep has to know of each. rows/families.h has how their
// rows are planned and made.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace crossover::bench {

/// What a family's rows train.
enum class Trains { nothing, steps, epochs };

struct BenchmarkFamily {
  std::string name;
  std::size_t worth = 0;  ///< where minutes count, a family of less worth comes behind: 0 is first
  Trains trains = Trains::nothing;  ///< crossovers are those of epochs
  bool bounds_others = false;       ///< ceilings
};

/// In the order in which they are measured: ceilings before what they bound.
const std::vector<BenchmarkFamily>& families();

/// Throws std::out_of_range where there is none of that name.
const BenchmarkFamily& find_family(const std::string& name);

}  // namespace crossover::bench
