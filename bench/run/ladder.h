// SPDX-License-Identifier: Apache-2.0
// The ladder: the rows that a crossover is made of, in the order in which they are worth most and
// risk least.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rows/families.h"
#include "rows/row.h"

namespace crossover::bench {

const BenchmarkFamily& family_in(const Row& row);
bool on_gpu(const Row& row);

/// "disc-2/100": of a row of a network.
std::string network_of(const Row& row);

/// Of CPU threads.
struct LeastAndMost {
  int least = std::numeric_limits<int>::max(), most = 0;
};

LeastAndMost threads_of(Rows& rows, const std::vector<std::string>& names);

/// Whether the row is one of those that the crossover is made of: on the CPU by one thread and by
/// all of them, on a GPU with the data there.
bool is_of_the_ladder(const Row& row, const LeastAndMost& threads);

/// Of what trains epochs, the GPU's part of the ladder goes by risk, and the CPU's further rows
/// beside it; what is not of the ladder comes behind.
std::size_t step_of(const Row& row, const LeastAndMost& threads);
inline constexpr std::size_t step_of_the_others = 5;

/// Where there is a GPU: of each network (of those on ladders, if there are any) the GPU's row with
/// which the least can go wrong, and the CPU's on all threads beside it, of several executions that
/// which was registered last (auto). They are a crossover, whatever comes of the rest.
std::set<std::string> first_of_the_ladder(Rows& rows, const std::vector<std::string>& names,
                                          const LeastAndMost& threads);

/// By network of these rows, when its turn is: ladder by ladder, each network halves the widest gap
/// between those before it, in the order of registration.
std::map<std::string, std::size_t> turns_of(Rows& rows, const std::vector<std::string>& names);

}  // namespace crossover::bench
