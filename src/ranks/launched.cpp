// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <initializer_list>

#include "crossover/ranks.h"

namespace crossover {
namespace {

/// The first of these variables that is set, or that number.
int number_in(std::initializer_list<const char*> variables, int otherwise) {
  for (const char* name : variables) {
    if (const char* text = std::getenv(name)) {
      return static_cast<int>(std::strtol(text, nullptr, 10));
    }
  }
  return otherwise;
}

}  // namespace

// Open MPI's mpirun; MPICH's and Intel's; srun, which counts the tasks of a step.

int launched_ranks() {
  return std::max(1, number_in({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 1));
}

int launched_rank() { return number_in({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, 0); }

}  // namespace crossover
