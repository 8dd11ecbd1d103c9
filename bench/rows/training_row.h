// SPDX-License-Identifier: Apache-2.0
// A row that trains a network: its timed loop, its profile, its registration.
#pragma once

#include <benchmark/benchmark.h>

#include "command_line/arguments.h"
#include "rows/device.h"
#include "rows/row.h"
#include "rows/training.h"

namespace crossover::bench {

/// Where one family of rows that train networks differs from another.
struct TrainingFamily {
  /// As Row::derive.
  void (*derive)(benchmark::UserCounters& counters, double seconds) = nullptr;
  /// Adds the counters that only this family has.
  void (*count)(const TrainingPlan& plan, const TrainingProgram& made, Result& result) = nullptr;
  int repetitions = 0;  ///< unless the command line says; 0: the sweep's
};

/// Each network on each target. Throws UsageError.
void register_training(const Arguments& arguments, Iteration iteration, Devices& devices,
                       Rows& rows, const TrainingFamily& family);

/// What follows from the seconds of an iteration that trains so many samples.
void derive_training(benchmark::UserCounters& counters, double seconds, double samples);

}  // namespace crossover::bench
