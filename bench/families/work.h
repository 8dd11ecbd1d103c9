// SPDX-License-Identifier: Apache-2.0
// What a row asks of its device, counted and not measured: what it needs at least, and how long it
// will take.
#pragma once

#include <cstdint>

#include "base/times.h"
#include "crossover/backend.h"
#include "crossover/cost.h"
#include "rows/devices.h"
#include "rows/row.h"

namespace crossover::bench {

// ---- At least. Readers of the file turn it into the row's bound, with the ceilings that its rows
// of the family Peak have measured (plots/crossover_bench/counts/bounds.py).

/// Of the step's batch, as it comes from the host.
std::int64_t input_bytes(const Workload& workload, const Step& step);

/// `counted` is the Workload's cost before it was rearranged. Of memory traffic only what the cache
/// can't hold from one step to the next is counted: each step's tensors, less the cache.
MinimumWork minimum_work_of(const Workload& workload, const Cost& counted, const Program& program,
                            const CompileOptions& options, const Device& device);

// ---- Seconds: guesses, from what can be counted before anything is compiled. The time left and
// the plan of a sweep stand on them, no result does.

/// What takes a row's time.
struct ExpectedWork {
  // Of one iteration:
  double flops = 0;
  double bytes_copied = 0;  ///< between host and device
  double launches = 0;      ///< on a GPU
  int multiprocessors = 0;  ///< of a GPU that compute; 0: all
  // After each run of the timed loop:
  double bytes_checked = 0;
  // Once:
  double bytes_prepared = 0;
  double flops_of_reference = 0;
  double seconds_of_choice = 0;     ///< of execution:auto
  double iterations_of_choice = 0;  ///< the same, beyond these
};

/// Of the interpreter in float64, on networks that it takes seconds for.
constexpr double reference_flops_per_second = 2.5e10;

/// What a thread of the CPU reaches at least, where it has enough to do.
constexpr double expected_flops_of_a_thread_per_second = 4e10;

double expected_reference_seconds(double flops);

/// `threads`: of the CPU. `most_instances`: of the row.
ExpectedSeconds expected_seconds(const Device& device, int threads, const Effort& effort,
                                 int most_instances, const ExpectedWork& work);

}  // namespace crossover::bench
