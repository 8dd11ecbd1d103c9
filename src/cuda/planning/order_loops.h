// SPDX-License-Identifier: Apache-2.0
// An order of runs as loops over the steps that follow one another in it again and again.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/step.h"

namespace crossover::cuda {

/// `times` turns of `cycle` runs, each of which runs the same steps as the turn before.
struct OrderLoop {
  std::int64_t first = 0;  ///< run of the order
  std::int64_t cycle = 1;
  std::int64_t times = 1;

  [[nodiscard]] std::int64_t end() const { return first + cycle * times; }
};

/// Loops that cover the order one after another; where nothing repeats, with one turn. An epoch is
/// one loop and the short batch behind it; with gradients that are added up, a cycle is an update.
std::vector<OrderLoop> find_loops(const std::vector<Run>& order);

}  // namespace crossover::cuda
