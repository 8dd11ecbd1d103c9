// SPDX-License-Identifier: Apache-2.0
// From the pieces of single steps to the whole order: where a GPU's time goes. Pure arithmetic; the
// pieces come from program.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "crossover/backend.h"

namespace crossover::cuda {

/// One execution of a step, taken apart. All in seconds.
struct StepSeconds {
  std::int64_t runs = 0;  ///< how often the order runs it
  Profile device;         ///< of the compute stream, back to back, without its copies
  double copy = 0;        ///< the batch's way from the host to where the step reads it
  double host = 0;        ///< the CPU's time to enqueue the step, waiting and a pageable copy apart
};

struct RunSeconds {
  std::vector<StepSeconds> steps;
  double host_once = 0;  ///< the CPU's time to enqueue what is enqueued once for the whole order
  double wait = 0;       ///< from an empty kernel's launch until the CPU knows of its end
};

/// The GPU computes while the CPU enqueues: `launch` is only the time by which the CPU is the
/// slower of the two, and a copy beside the computation counts only as far as it outlasts it. With
/// a wait after each step that balance is struck for each step, else for the whole order.
Profile combine(const RunSeconds& run, Placement placement, bool wait_every_step);

}  // namespace crossover::cuda
