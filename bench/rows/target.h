// SPDX-License-Identifier: Apache-2.0
// A device and a way to use it: one side of a comparison.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "command_line/axes.h"
#include "rows/device.h"

namespace crossover::bench {

struct Target {
  Device* device = nullptr;
  int ranks = 1;                  ///< processes that share each batch
  int loader = 0;                 ///< threads that assemble batches while it trains
  std::int64_t bucket_bytes = 0;  ///< of gradients that several ranks sum at once
  Ranks* joined = nullptr;        ///< this process among them; none where it only plans
  CompileOptions options;
  Configuration row;                       ///< the row's configuration, whole
  std::vector<std::string> warnings;       ///< what casts doubt on its figures, a sentence each
  std::map<std::string, double> counters;  ///< that all its rows have: cpu_threads
};

/// The device that a configuration names; null where it names none, or one that is not here.
Device* find_device(const Configuration& row, Devices& devices);

/// The same. std::out_of_range where it is not here.
Device& device_of(const Configuration& row, Devices& devices);

/// What a row's configuration says of its device, and of how to use it.
Target target_of(const Configuration& row, Devices& devices);

/// A row's configuration for each mode of a device, on the CPU with each number of threads.
std::vector<Configuration> on_devices(const Configuration& what, const Devices& devices,
                                      const std::vector<int>& threads,
                                      const std::vector<Configuration>& cpu_modes,
                                      const std::vector<Configuration>& gpu_modes);

}  // namespace crossover::bench
