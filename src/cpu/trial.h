// SPDX-License-Identifier: Apache-2.0
// Two Programs of the same Workload, timed in turn.
#pragma once

#include <cstdint>

#include "crossover/backend.h"

namespace crossover::cpu {

/// The seconds of the second over those of the first, for the first of `runs` positions of the
/// order, or for as many as are worth timing at once. Both start with what they hold, and hold
/// anything afterwards. Takes two positions of each, and beyond them a fifth of a second of each at
/// most, or one more.
double ratio_of_seconds(Program& first, Program& second, std::int64_t runs);

}  // namespace crossover::cpu
