// SPDX-License-Identifier: Apache-2.0
#include "order_loops.h"

#include <algorithm>
#include <iterator>

namespace crossover::cuda {
namespace {

/// How many runs from `first` on, in whole turns, repeat the first `cycle` of them.
std::int64_t times_of(const std::vector<Run>& order, std::int64_t first, std::int64_t cycle) {
  const auto begin = order.begin() + first;
  const auto differing = std::mismatch(begin + cycle, order.end(), begin,
                                       [](const Run& a, const Run& b) { return a.step == b.step; });
  return std::distance(begin, differing.first) / cycle;
}

/// Of the loops that begin with a run, the one that goes the farthest, of such the shortest cycle.
OrderLoop loop_from(const std::vector<Run>& order, std::int64_t first) {
  constexpr std::int64_t longest_cycle = 64;
  OrderLoop best{.first = first};
  const std::int64_t runs_left = std::ssize(order) - first;
  for (std::int64_t cycle = 1; cycle <= std::min(longest_cycle, runs_left / 2); ++cycle) {
    const OrderLoop loop{.first = first, .cycle = cycle, .times = times_of(order, first, cycle)};
    if (loop.times > 1 && loop.end() > best.end()) {
      best = loop;
    }
    if (best.end() == std::ssize(order)) {
      break;
    }
  }
  return best;
}

}  // namespace

std::vector<OrderLoop> find_loops(const std::vector<Run>& order) {
  std::vector<OrderLoop> loops;
  for (std::int64_t run = 0; run < std::ssize(order);) {
    const OrderLoop loop = loop_from(order, run);
    run = loop.end();
    if (loop.times == 1 && !loops.empty() && loops.back().times == 1) {
      ++loops.back().cycle;
    } else {
      loops.push_back(loop);
    }
  }
  return loops;
}

}  // namespace crossover::cuda
