// SPDX-License-Identifier: Apache-2.0
// The sweeps: how much is measured where no flag says otherwise.
#pragma once

#include <string>
#include <vector>

#include "command_line/axes.h"

namespace crossover::bench {

struct Sweep {
  std::string name;
  std::vector<std::string> models;
  std::vector<std::string> minibatch_models;  ///< of the family Minibatch
  std::vector<Configuration> cpu_modes;       ///< of training, each with the same axes
  std::vector<Configuration> gpu_modes;       ///< the same
  int repetitions = 0;
  double min_time_seconds = 0;  ///< of one repetition
  std::vector<std::string> precisions{"f32"};
  bool refines = false;   ///< --refine=auto looks between its sizes
  bool by_worth = false;  ///< schedule.h; rows of the CPU on one thread and on all cores
};

/// "quick", "default", "full", "gpu".
std::vector<Sweep> sweeps();

}  // namespace crossover::bench
