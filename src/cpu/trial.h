// SPDX-License-Identifier: Apache-2.0
// Two Programs of the same Workload, timed in turn.
#pragma once

#include <cstdint>

#include "crossover/backend.h"

namespace crossover::cpu {

/// Whether the second takes less time for the first of `runs` positions of the order, or for as
/// many as are worth timing at once. Both start with what they hold, and hold anything afterwards.
/// Takes two positions of each, and beyond them a fifth of a second of each at most, or one more.
bool second_is_faster(Program& first, Program& second, std::int64_t runs);

}  // namespace crossover::cpu
