// SPDX-License-Identifier: Apache-2.0
// What a GPU's driver reports in addition to CUDA: facts that are constant while a program runs,
// and the current state. Values that the driver does not report are absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace crossover {

struct GpuFacts {
  std::optional<std::string> driver;         ///< its version: "580.65.06"
  std::optional<std::int64_t> memory_bytes;  ///< all of it
  std::optional<int> sm_clock_max_mhz, memory_clock_max_mhz;
  std::optional<double> power_limit_watts;
  std::optional<bool> persistence_mode, ecc;
};

struct GpuState {
  std::optional<int> sm_clock_mhz, memory_clock_mhz, temperature_celsius;
  std::vector<std::string> throttle_reasons;  ///< in words; an idle GPU is not a reason
};

}  // namespace crossover
