// SPDX-License-Identifier: Apache-2.0
// Measures what a schedule says, step by step.
#pragma once

#include <functional>

#include "base/times.h"
#include "rows/row.h"
#include "run/sampler.h"
#include "run/schedule.h"

namespace crossover::bench {

/// What steps need that measure no row of the plan. May be empty.
struct SweepActions {
  std::function<void()> tell_answer;
  std::function<void(double seconds)> look_closer;  ///< with the most seconds that it may take
};

void measure(Schedule& schedule, const Spent& spent, Rows& rows, Sampler& sampler,
             const SweepActions& actions);

}  // namespace crossover::bench
