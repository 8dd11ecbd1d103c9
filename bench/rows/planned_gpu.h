// SPDX-License-Identifier: Apache-2.0
// A GPU that is not here: for a plan of what would be measured on one.
#pragma once

#include "rows/device.h"

namespace crossover::bench {

/// Has every precision, and the memory and cache of a GPU for data centres. Runs nothing.
Device planned_gpu();

}  // namespace crossover::bench
