// SPDX-License-Identifier: Apache-2.0
// The two sides of every comparison, as the families find them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "crossover/backend.h"

namespace crossover::bench {

struct Device {
  std::unique_ptr<Backend> backend;
  std::int64_t cache_bytes = 0;  ///< of the last level: what fits is not read from memory again
  std::string failure;           ///< why nothing more can be measured on it; empty: it is well

  [[nodiscard]] std::string name() const { return backend->describe().device; }
};

struct Devices {
  Device cpu;
  std::optional<Device> gpu;
  std::string gpu_reason;  ///< why there is none; empty where there is one
};

/// Throws UsageError where the command line demands a GPU and there is none.
Devices find_devices(CudaUse use);

/// Processor cores that one process may use.
int usable_cores();

/// 1, 2, 4 ... up to the cores, or of a sweep by worth 1 and all of them; or what the command line
/// says.
std::vector<int> thread_counts(const Arguments& arguments);

/// Sentences on what makes a row of that many threads doubtful.
std::vector<std::string> doubts_about_threads(int threads);

}  // namespace crossover::bench
