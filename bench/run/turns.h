// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: rows of the same work alternate, repetition by repetition.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "rows/row.h"
#include "run/order.h"
#include "run/sampler.h"

namespace crossover::bench {

/// Of a row without a number of its own as many as the sweep has.
int repetitions_of(const Row& row, int of_sweep);

/// Which neighbours of a plan that do the same work take turns, so that drift hits all alike.
enum class Together {
  devices,  ///< those on several devices
  all,      ///< also those on one
};

/// All other rows are alone.
std::vector<std::vector<std::string>> turns(const std::vector<PlannedRow>& plan, Rows& rows,
                                            Together together);

/// Takes repetitions of these rows in turn until each has `wanted` of them or `has_time` denies
/// the next one, and reports them. What they hold at once must fit: a row for which no memory is
/// left has its turns when the others are done. With `random` each round is in another order.
void take_turns(const std::vector<std::string>& names, Rows& rows, Sampler& sampler,
                const std::function<int(const std::string& name)>& wanted,
                const std::function<bool(const std::string& name)>& has_time,
                std::mt19937* random = nullptr);

}  // namespace crossover::bench
