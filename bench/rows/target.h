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
  std::string row;                ///< its name, by which ranks that follow find it
  Ranks* joined = nullptr;        ///< this process among them; none where it only plans
  CompileOptions options;
  Configuration configuration;             ///< the device's part: device, execution, ...
  std::vector<std::string> warnings;       ///< what casts doubt on its figures, a sentence each
  std::map<std::string, double> counters;  ///< that all its rows have: cpu_threads
};

/// Of that many ranks: one for each mode of a device and each size of buckets in bytes, on the CPU
/// with each number of a rank's threads.
std::vector<Target> targets_on_ranks(Devices& devices, const Configuration& common, int ranks,
                                     const std::vector<int>& threads,
                                     const std::vector<std::int64_t>& buckets,
                                     const std::vector<Configuration>& cpu_modes,
                                     const std::vector<Configuration>& gpu_modes);

/// One for each mode of a device, on the CPU with each number of threads. `common`: what all of
/// them are compiled with (precision, loss).
std::vector<Target> targets_of(Devices& devices, const Configuration& common,
                               const std::vector<int>& threads,
                               const std::vector<Configuration>& cpu_modes,
                               const std::vector<Configuration>& gpu_modes);

}  // namespace crossover::bench
