// SPDX-License-Identifier: Apache-2.0
// What a row asks of its device, counted and not measured: what it needs at least, how long it will
// take, and what the training or the use of a network costs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>

#include "command_line/arguments.h"
#include "command_line/sweeps.h"
#include "crossover/backend.h"
#include "crossover/cost.h"
#include "rows/device.h"

namespace crossover::bench {

// ---- At least. Readers of the file turn it into the row's bound, with the ceilings that its rows
// of the family Peak have measured (plots/core/bounds.py).

/// What one iteration of a row takes at least, counted, not measured.
struct MinimumWork {
  double flops = 0;
  double memory_bytes = 0;  ///< that no cache can save
  double bytes_to_device = 0;
  double bytes_from_device = 0;
  double launches = 0;
  bool graph = false;  ///< the launches are nodes of CUDA graphs
};

/// Of the step's batch, as it comes from the host.
std::int64_t input_bytes(const Workload& workload, const Step& step);

/// `counted` is the Workload's cost before it was rearranged. Of memory traffic only what the cache
/// can't hold from one step to the next is counted: each step's tensors, less the cache.
MinimumWork minimum_work_of(const Workload& workload, const Cost& counted, const Program& program,
                            const CompileOptions& options, const Device& device);

// ---- Seconds: guesses, from what can be counted before anything is compiled. The time left and
// the plan of a sweep stand on them, no result does.

/// How long a GPU works before a row's first timed loop, and before each further one: at rest its
/// clocks fall, and they take some milliseconds to rise again. So long again while its clock moves,
/// and no longer than the last.
constexpr double first_warm_up_seconds = 0.05;
constexpr double warm_up_seconds = 0.02;
constexpr double longest_warm_up_seconds = 0.2;

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

struct ExpectedSeconds {
  double all = 0;         ///< from compilation to the last repetition, of all its instances
  double repetition = 0;  ///< of these, of each repetition
};

/// A row is made so often for its repetitions: as often as there are some, where that makes it at
/// most a quarter longer than the `seconds` that it takes with one instance; else as often as does,
/// and at least 3 times. At most `most`.
int instances_of(int repetitions, double seconds, double making_seconds, int most);

/// `threads`: of the CPU. `most_instances`: of the row.
ExpectedSeconds expected_seconds(const Device& device, int threads, const Effort& effort,
                                 int most_instances, const ExpectedWork& work);

// ---- A network: what training or using it costs, as JSON.

/// The cost of the one network, batch size and precision that the command line names;
/// docs/method/timed.md defines the fields. Throws UsageError where it names none or several, or
/// where the numbers are beyond counting.
nlohmann::ordered_json cost_json(const Arguments& arguments);

}  // namespace crossover::bench
