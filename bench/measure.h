// SPDX-License-Identifier: Apache-2.0
// The one timed loop of the project.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>

#include "crossover/backend.h"

namespace crossover::bench {

/// Runs the whole order once per iteration. Google Benchmark holds the clock.
inline void measure(benchmark::State& state, Program& program, std::int64_t runs) {
  for ([[maybe_unused]] auto iteration : state) {
    program.enqueue(0, runs);
    program.wait();
  }
}

}  // namespace crossover::bench
