// SPDX-License-Identifier: Apache-2.0
// The forms that a Workload's graphs may have, and which of them is the fastest.
#pragma once

#include <functional>
#include <vector>

#include "plan.h"

namespace crossover::cuda {

/// The one of which the others are parts: two streams, and loops where there are any.
constexpr GraphForm largest_form{.loops = true, .streams = 2};

/// Of graphs whose largest_form is planned like this, the plainest first.
std::vector<GraphForm> graph_forms(const Workload& workload, const LaunchPlan& largest);

/// The last that beats the fastest before it, as the first does by running; a single one is not
/// tried. One that throws Unsupported or OutOfMemory does not; where all do, it is the first.
GraphForm fastest_of(const std::vector<GraphForm>& forms,
                     const std::function<bool(const GraphForm&)>& beats);

}  // namespace crossover::cuda
