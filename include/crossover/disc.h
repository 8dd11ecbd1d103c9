// SPDX-License-Identifier: Apache-2.0
// The sizes of the disc family, disc-2 to disc-12 and those in between: the scale on which a
// crossover is looked for.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/catalogue.h"

namespace crossover {

/// From disc-2 to disc-12, with strictly more parameters from one to the next. In between the
/// hidden widths grow by sixteenths of the smaller network's, so that those of 16 and more stay
/// multiples of a power of two as large as they can be: disc-8x1.5 has 6, 12, ... 384. Neighbours
/// differ by at most 23 %, so that a network with a tenth more or less is there for any number.
const std::vector<LadderSize>& disc_sizes();

/// The one whose number of parameters is nearest.
const LadderSize& nearest_disc(std::int64_t parameters);

}  // namespace crossover
