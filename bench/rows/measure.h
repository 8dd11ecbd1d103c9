// SPDX-License-Identifier: Apache-2.0
// The one timed loop of the project.
#pragma once

#include <benchmark/benchmark.h>

#include "rows/row.h"

namespace crossover::bench {

/// Google Benchmark holds the clock, and decides how often.
inline void measure(benchmark::State& state, PreparedBenchmark& prepared) {
  prepared.expect(state.max_iterations);
  for ([[maybe_unused]] auto iteration : state) {
    prepared.run();
  }
}

}  // namespace crossover::bench
