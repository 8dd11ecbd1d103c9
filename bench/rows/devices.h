// SPDX-License-Identifier: Apache-2.0
// The devices that rows are measured on. families/device.h finds them, and says how each is used.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "axes/axes.h"
#include "crossover/backend.h"
#include "crossover/backends.h"

namespace crossover::bench {

struct Device {
  const BackendKind* kind = &backends().front();
  Description description;
  std::int64_t cache_bytes = 0;  ///< of the last level: what fits is not read from memory again
  std::string failure;           ///< why nothing more can be measured on it; empty: it is well
  nlohmann::ordered_json facts;  ///< machine.gpu of a result file; null of one without own memory
  std::function<GpuState()> state = [] { return GpuState(); };  ///< as it is now
  std::unique_ptr<Backend> backend;  ///< for families whose rows are compiled; nobody else asks it

  [[nodiscard]] const std::string& name() const { return kind->name; }
  /// Its rows say on how many threads of a process they are, and run as a CPU's do.
  [[nodiscard]] bool has_threads() const { return kind->has_threads; }
  /// What it reads is copied there; it tells of its memory, its clocks and its meters by itself.
  [[nodiscard]] bool has_own_memory() const { return kind->has_own_memory; }
  /// Whose axes its rows have.
  [[nodiscard]] AxisDevices axes() const {
    return kind->has_threads ? AxisDevices::cpu : AxisDevices::gpu;
  }
};

struct Devices {
  std::vector<Device> all;                     ///< the CPU first
  std::map<std::string, std::string> missing;  ///< by kind, why none of it was found
  Ranks* ranks = nullptr;  ///< that this process is one of; none of a process alone

  [[nodiscard]] Device& cpu() { return all.front(); }
  [[nodiscard]] std::vector<Device*> gpus();
  [[nodiscard]] std::vector<const Device*> gpus() const;
  /// Null where there is none.
  [[nodiscard]] Device* find(const std::string& name);
  /// Why no GPU was found; empty where one was.
  [[nodiscard]] std::string gpu_reason() const;
  /// What the first GPU took so far; none where its driver does not tell.
  [[nodiscard]] std::optional<double> joules_of_gpu() const;
};

/// Processor cores that one process may use, no more than its container's quota gives time of.
int usable_cores();

/// The threads that these cores run at once.
int usable_processors();

}  // namespace crossover::bench
