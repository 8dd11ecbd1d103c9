// SPDX-License-Identifier: Apache-2.0
// What make_shared_sum() is made of on each rank.
#pragma once

#include <cstdint>
#include <memory>

#include "crossover/ranks.h"
#include "share.h"

namespace crossover {

/// The ranks' sum of one tensor, by itself. `gpu`: in whose memory it is; null: in the host's.
std::unique_ptr<Share> sum_of(Ranks& ranks, std::int64_t floats, const Backend* gpu);

}  // namespace crossover
